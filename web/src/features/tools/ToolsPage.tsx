import { useMemo, useState, type ReactNode } from "react";
import { useTools } from "../../api/queries";
import type { ToolLine } from "../../api/types";
import { fieldsOf } from "../../model/form";
import { count } from "../../model/text";
import { Empty, Loading, ProblemNote } from "../../ui/States";
import { Digest, Text, Value } from "../../ui/Text";

/** What plans can call, by the server that brings it. */
export default function ToolsPage(): ReactNode {
  const tools = useTools();
  const [query, setQuery] = useState("");
  const servers = useMemo(() => {
    const words = query.toLowerCase();
    const found = (tools.data ?? []).filter((tool) => `${tool.server}.${tool.name} ${tool.title ?? ""} ${tool.description ?? ""}`.toLowerCase().includes(words));
    const groups = new Map<string, ToolLine[]>();
    for (const tool of found) groups.set(tool.server, [...(groups.get(tool.server) ?? []), tool]);
    return [...groups];
  }, [tools.data, query]);
  return (
    <div className="page narrow">
      <header className="page-head">
        <h1>
          Tools <span className="number">{tools.data?.length}</span>
        </h1>
      </header>
      <div className="row filters">
        <input type="search" aria-label="Search tools" placeholder="Search tools" value={query} onChange={(event) => setQuery(event.target.value)} />
      </div>
      {tools.isPending ? <Loading what="the tools" /> : null}
      {tools.error ? <ProblemNote error={tools.error} onRetry={() => void tools.refetch()} /> : null}
      {tools.isSuccess && servers.length === 0 ? (
        <Empty title="No tool is like that">
          <p>
            Servers are configured in <code>planwright.toml</code> and trusted with <code>planwright servers trust</code>.
          </p>
        </Empty>
      ) : null}
      {servers.map(([server, lines]) => (
        <section key={server} className="stack" aria-label={`Server ${server}`}>
          <h2 className="group">
            <Text text={server} /> <span className="number">{count(lines.length, "tool")}</span>
          </h2>
          {lines.map((tool) => (
            <Tool key={tool.name} tool={tool} />
          ))}
        </section>
      ))}
    </div>
  );
}

/** Whether a call that may have been made can be made again. */
const CLASSES: Record<string, string> = { safe: "repeatable", keyed: "repeatable with its key", unsafe: "not repeatable" };

function Tool({ tool }: { tool: ToolLine }): ReactNode {
  const fields = fieldsOf(tool.inputSchema);
  return (
    <details className="card tool-card">
      <summary>
        <b>
          <Text text={tool.name} />
        </b>{" "}
        <span className={tool.readOnly ? "tag" : "tag ask"}>{tool.readOnly ? "○ only reads" : "✎ changes something"}</span>{" "}
        <span className="tag">{CLASSES[tool.class] ?? tool.class}</span>
        <span className="quiet tool-about">
          <Text text={tool.description ?? tool.title ?? ""} />
        </span>
      </summary>
      <dl className="facts">
        {fields.map((field) => (
          <div key={field.name}>
            <dt>
              <Text text={field.name} />
            </dt>
            <dd>
              {field.kind}
              {field.required ? ", needed" : ""} {field.help ? <Text text={`· ${field.help}`} /> : null}
            </dd>
          </div>
        ))}
        <div>
          <dt>definition</dt>
          <dd>
            <Digest digest={tool.digest} />
          </dd>
        </div>
      </dl>
      <details>
        <summary>Schema of its arguments</summary>
        <Value value={tool.inputSchema} />
      </details>
    </details>
  );
}
