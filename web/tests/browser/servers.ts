// A database and a broker of a suite's own, in a temporary folder on free ports. A shell keeps each: it ends the server when
// this process is gone, however that came about.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { until } from "./bench";

const KEEPER = `trap "" TERM INT HUP
directory=$1; shift
setsid "$@" >>"$directory/log" 2>&1 </dev/null &
server=$!
read -r _
kill -s KILL -- "-$server"
wait "$server"
rm -rf "$directory"`;

const POSTGRES = "/usr/lib/postgresql";
const PASSWORD = "hunter2";

/** What a team shares that outgrew one machine. */
export class Servers {
  private readonly keepers: ChildProcess[] = [];
  readonly store: string;
  readonly broker: string;

  private constructor(
    private readonly database: number,
    private readonly redis: number,
  ) {
    this.store = `postgres://postgres@127.0.0.1:${database}/postgres`;
    this.broker = `redis://:${PASSWORD}@127.0.0.1:${redis}/0`;
  }

  static async start(): Promise<Servers> {
    const [database, redis] = await Promise.all([freePort(), freePort()]);
    const servers = new Servers(database, redis);
    await Promise.all([servers.startPostgres(), servers.startRedis()]);
    return servers;
  }

  private async startPostgres(): Promise<void> {
    const programs = postgresPrograms();
    const folder = makeFolder();
    const data = join(folder, "data");
    const [first = "", ...rest] = asOther(join(programs, "initdb"), "--pgdata", data, "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync");
    execFileSync(first, rest, { cwd: "/tmp", stdio: "ignore" });
    const port = String(this.database);
    this.keep(folder, asOther(join(programs, "postgres"), "-D", data, "-p", port, "-k", folder, "-c", "listen_addresses=127.0.0.1"));
    await until(async () => succeeds(join(programs, "psql"), "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-X", "-c", "SELECT 1"), "Postgres answers");
  }

  private async startRedis(): Promise<void> {
    const folder = makeFolder();
    this.keep(folder, asOther("redis-server", "--port", String(this.redis), "--bind", "127.0.0.1", "--requirepass", PASSWORD, "--save", "", "--dir", folder));
    await until(async () => succeeds("redis-cli", ...this.redisArgs("PING")), "Redis answers");
  }

  private keep(folder: string, command: string[]): void {
    this.keepers.push(spawn("sh", ["-c", KEEPER, "keeper", folder, ...command], { cwd: "/tmp", stdio: ["pipe", "ignore", "ignore"] }));
  }

  private redisArgs(...command: string[]): string[] {
    return ["-p", String(this.redis), "-a", PASSWORD, "--no-auth-warning", ...command];
  }

  /** Asks Redis, and returns what it says. */
  askRedis(...command: string[]): string {
    return execFileSync("redis-cli", this.redisArgs(...command), { stdio: ["ignore", "pipe", "ignore"] }).toString().trim();
  }

  async stop(): Promise<void> {
    for (const keeper of this.keepers) {
      const gone = new Promise((resolve) => keeper.once("close", resolve));
      keeper.stdin?.end();
      await gone;
    }
  }
}

function postgresPrograms(): string {
  const named = process.env["PLANWRIGHT_POSTGRES_BIN"];
  if (named !== undefined) return named;
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES) : [];
  const folder = versions.map((version) => join(POSTGRES, version, "bin")).findLast((bin) => existsSync(join(bin, "initdb")));
  if (folder === undefined) throw new Error("there is no Postgres: apt-get install postgresql");
  return folder;
}

/** Postgres does not run as root. */
function asOther(...command: string[]): string[] {
  return process.getuid?.() === 0 ? ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", ...command] : command;
}

function makeFolder(): string {
  const folder = mkdtempSync("/tmp/planwright-page-server-");
  if (process.getuid?.() === 0) execFileSync("chown", ["nobody:nogroup", folder]);
  return folder;
}

function succeeds(program: string, ...args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("there is no free port");
  return address.port;
}
