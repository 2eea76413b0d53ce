import { lazy, Suspense, useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from "react";
import { queryClient, useInbox, useSettings, useWhoami } from "./api/queries";
import { renewSession, signOut } from "./api/client";
import { onSessionChange, readProof } from "./api/session";
import { InboxPage } from "./features/inbox/InboxPage";
import { ReviewPage } from "./features/review/ReviewPage";
import { SIGN_IN_KEY, SignInPage } from "./features/signin/SignInPage";
import type { Route } from "./model/route";
import { inboxRow } from "./model/inbox";
import { visible } from "./model/text";
import { Dialog } from "./ui/Dialog";
import { activeKeys, useKeys } from "./ui/keys";
import { useNotices, useNoticeState } from "./ui/notices";
import { Link, navigate, useRoute } from "./ui/router";
import { Empty, Loading, ProblemNote } from "./ui/States";
import { Text } from "./ui/Text";

const RunPage = lazy(() => import("./features/run/RunPage"));
const PlansPage = lazy(() => import("./features/plans/PlansPage"));
const NewPlanPage = lazy(() => import("./features/plans/NewPlanPage"));
const ToolsPage = lazy(() => import("./features/tools/ToolsPage"));
const StatsPage = lazy(() => import("./features/stats/StatsPage"));
const WorkersPage = lazy(() => import("./features/workers/WorkersPage"));
const ChatPage = lazy(() => import("./features/chat/ChatPage"));
const SettingsPage = lazy(() => import("./features/settings/SettingsPage"));

export function App(): ReactNode {
  const proof = useSyncExternalStore(onSessionChange, readProof);
  useEffect(() => {
    // Nothing of the session that ended stays. How one signs in is being read by the page that comes now.
    if (proof === null) queryClient.removeQueries({ predicate: (query) => query.queryKey[0] !== SIGN_IN_KEY });
  }, [proof]);
  return proof === null ? <SignInPage /> : <SignedIn />;
}

/** How often the page looks whether its session is to be renewed. */
const RENEWAL_MS = 600_000;

const PAGES: { route: Route; word: string; key: string }[] = [
  { route: { page: "inbox" }, word: "Inbox", key: "1" },
  { route: { page: "plans" }, word: "Plans", key: "2" },
  { route: { page: "tools" }, word: "Tools", key: "3" },
  { route: { page: "stats" }, word: "Stats", key: "4" },
  { route: { page: "workers" }, word: "Workers", key: "7" },
  { route: { page: "chat" }, word: "Chat", key: "5" },
  { route: { page: "settings" }, word: "Settings", key: "6" },
];

function SignedIn(): ReactNode {
  const route = useRoute();
  const who = useWhoami();
  const notices = useNoticeState();
  const inbox = useInbox(notices === "on");
  const rows = useMemo(() => inbox.data?.map(inboxRow), [inbox.data]);
  useNotices(rows);
  const hasWorkers = useSettings().data?.dispatch.workers === true;
  const pages = PAGES.filter(({ route: { page } }) => page !== "workers" || hasWorkers || route.page === "workers");
  const [help, setHelp] = useState(false);
  const expiresAt = who.data?.session?.expiresAt;
  useEffect(() => {
    if (expiresAt === undefined) return;
    const renew = async () => {
      if (await renewSession(expiresAt)) await queryClient.invalidateQueries({ queryKey: ["whoami"] });
    };
    // Without an answer it is tried again; a session that is over says so with the next request.
    const tryRenew = () => void renew().catch(() => undefined);
    tryRenew();
    const timer = setInterval(tryRenew, RENEWAL_MS);
    return () => clearInterval(timer);
  }, [expiresAt]);
  const waiting = inbox.data?.length ?? 0;
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${titleOf(route)} · Planwright`;
  }, [route, waiting]);
  useKeys([
    ...pages.map(({ route: to, word, key }) => ({ key, words: `open ${word}`, run: () => navigate(to) })),
    { key: "?", words: "show the keys", run: () => setHelp(true) },
  ]);
  return (
    <>
      <a className="skip-link" href="#main">
        Skip to the page
      </a>
      <header className="top">
        <Link to={{ page: "inbox" }} className="brand">
          Planwright
        </Link>
        <nav aria-label="Pages">
          {pages.map(({ route: to, word }) => (
            <Link key={word} to={to} current={isWithin(route, to)}>
              {word}
              {to.page === "inbox" && waiting > 0 ? (
                <span className="badge">
                  {waiting}
                  <span className="only-read"> waiting</span>
                </span>
              ) : null}
            </Link>
          ))}
        </nav>
        <div className="who">
          {who.data ? (
            <span>
              <Text text={who.data.name} /> <span className="quiet">{who.data.role}</span>
            </span>
          ) : null}
          <button type="button" className="button quiet" onClick={() => setHelp(true)} aria-label="Keys">
            ?
          </button>
          <button type="button" className="button quiet" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {who.error ? <ProblemNote error={who.error} onRetry={() => void who.refetch()} /> : null}
        <Suspense fallback={<Loading what="the page" />}>
          <PageOf route={route} />
        </Suspense>
      </main>
      {help ? (
        <Dialog title="Keys" onClose={() => setHelp(false)}>
          <dl className="keys">
            {activeKeys().map(({ key, words }) => (
              <div key={key + words}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{words}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      ) : null}
    </>
  );
}

function PageOf({ route }: { route: Route }): ReactNode {
  switch (route.page) {
    case "inbox":
      return <InboxPage />;
    case "plans":
      return <PlansPage />;
    case "new":
      return <NewPlanPage />;
    case "review":
      return <ReviewPage key={`${route.plan}#${route.edit ?? ""}`} id={route.plan} edit={route.edit} />;
    case "run":
      return <RunPage key={route.run} plan={route.plan} run={route.run} step={route.step ?? null} />;
    case "tools":
      return <ToolsPage />;
    case "stats":
      return <StatsPage />;
    case "workers":
      return <WorkersPage />;
    case "chat":
      return <ChatPage />;
    case "settings":
      return <SettingsPage />;
    case "missing":
      return (
        <Empty title="There is no such page">
          <p>
            <Link to={{ page: "inbox" }}>Go to the inbox</Link>
          </p>
        </Empty>
      );
  }
}

function titleOf(route: Route): string {
  switch (route.page) {
    case "review":
      return `Review ${visible(route.plan)}`;
    case "run":
      return `Run of ${visible(route.plan)}`;
    case "new":
      return "Propose a plan";
    case "missing":
      return "Not found";
    default:
      return PAGES.find((page) => page.route.page === route.page)?.word ?? "Planwright";
  }
}

function isWithin(route: Route, page: Route): boolean {
  if (route.page === page.page) return true;
  return page.page === "plans" && ["review", "run", "new"].includes(route.page);
}
