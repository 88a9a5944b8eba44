// A starter adapter for `mcpvisor chaos score`, for the official TypeScript SDK, version 1 or 2. Put your own client in the
// place of Link. To run it:
//
//   npm install tsx @modelcontextprotocol/client                        # version 2; version 1 is @modelcontextprotocol/sdk
//   mcpvisor chaos score -- npx tsx adapter.mts                         # SDK=1 in the environment for version 1
//
// It is written as the SDK's documentation shows: a timeout for every request, and a new client at the next use of one whose
// transport was closed. No call is sent twice. Standard output belongs to the protocol: say everything else on standard error.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

type Command = {
  id: number; do: string; name?: string; command?: string; args?: any; url?: string; headers?: Record<string, string>;
  tool?: string; timeoutMs?: number;
};

const v1 = process.env.SDK === "1";
const load = (name: string): Promise<any> => import(name);
const { Client } = await load(v1 ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StdioClientTransport } = await load(v1 ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio");
const { StreamableHTTPClientTransport } = await load(
  v1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client");

/** Which version of the SDK is installed beside this file; the SDK does not say it itself. */
const version = ((): string => {
  const name = v1 ? "@modelcontextprotocol/sdk" : "@modelcontextprotocol/client";
  try {
    return JSON.parse(readFileSync(new URL(`./node_modules/${name}/package.json`, import.meta.url), "utf8")).version;
  } catch {
    return v1 ? "1" : "2"; // it is installed elsewhere
  }
})();

/** One server: how to reach it, and the client that does, if there is one. */
class Link {
  private client?: any;
  private dialling?: Promise<any>;

  constructor(private readonly where: Command) {}

  /** The client that is open, or a new one. The server is never connected twice at a time. */
  get(timeout: number): Promise<any> {
    if (this.client) return Promise.resolve(this.client);
    this.dialling ??= this.dial(timeout).finally(() => { this.dialling = undefined; });
    return this.dialling;
  }

  private async dial(timeout: number): Promise<any> {
    const { command, args, url, headers } = this.where;
    const transport = url
      ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
      : new StdioClientTransport({ command, args, stderr: "ignore" });
    const client = new Client({ name: "starter-adapter", version: "1" },
      v1 ? {} : { versionNegotiation: { mode: "auto", probe: { timeoutMs: 2000 } } });
    client.onclose = () => { if (this.client === client) this.client = undefined; };
    try {
      await client.connect(transport, { timeout });
    } catch (e) {
      await client.close().catch(() => {});
      throw e;
    }
    return (this.client = client);
  }

  get connected(): boolean { return this.client !== undefined; }

  async close(): Promise<void> {
    const client = this.client ?? await this.dialling?.catch(() => undefined);
    this.client = undefined;
    const goodbye = client?.transport?.terminateSession?.(); // the SDK sends DELETE only when it is told to
    if (goodbye) await Promise.race([goodbye.catch(() => {}), new Promise((r) => setTimeout(r, 2000))]);
    await client?.close();
  }
}

const links = new Map<string, Link>();

function link(name?: string): Link {
  const found = links.get(name ?? "");
  if (!found) throw new Error(`no server ${name}`);
  return found;
}

async function perform(c: Command): Promise<object> {
  const timeout = c.timeoutMs || 60_000;
  switch (c.do) {
    case "about":
      return { about: `TypeScript SDK ${version}${v1 ? "" : ", versionNegotiation auto with a probe of 2s"}; a new client at the next use of one that was closed, no call twice` };
    case "connect":
      links.set(c.name!, new Link(c));
      await link(c.name).get(timeout);
      return {};
    case "list": {
      const client = await link(c.name).get(timeout);
      const tools: string[] = [];
      let cursor: string | undefined;
      do { // version 1 gives a page at a time, version 2 gives all
        const page = await client.listTools(cursor === undefined ? undefined : { cursor }, { timeout });
        tools.push(...page.tools.map((t: any) => t.name));
        cursor = v1 ? page.nextCursor : undefined;
      } while (cursor !== undefined && tools.length < 100_000);
      return { tools };
    }
    case "call": {
      const client = await link(c.name).get(timeout);
      const call = { name: c.tool, arguments: c.args };
      return { result: v1 ? await client.callTool(call, undefined, { timeout }) : await client.callTool(call, { timeout }) };
    }
    case "status":
      return { status: Object.fromEntries([...links].map(([name, l]) => [name, l.connected ? "connected" : "lost"])) };
    case "close":
      await link(c.name).close();
      return {};
    case "quit":
      await Promise.allSettled([...links.values()].map((l) => l.close()));
      return {};
  }
  throw new Error(`unknown command ${c.do}`);
}

async function answer(c: Command): Promise<void> {
  const began = Date.now();
  let said: object;
  try {
    said = { ok: true, ...(await perform(c)) };
  } catch (e) {
    said = { ok: false, error: String((e as Error)?.message ?? e) };
  }
  const line = JSON.stringify({ id: c.id, ...said, tookMs: Date.now() - began }) + "\n";
  await new Promise((written) => process.stdout.write(line, written));
  if (c.do === "quit") process.exit(0);
}

const lines = createInterface({ input: process.stdin });
lines.on("line", (text) => { void answer(JSON.parse(text)); }); // commands run beside each other
lines.on("close", () => { void perform({ id: 0, do: "quit" }).finally(() => process.exit(0)); });
