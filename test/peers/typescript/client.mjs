// A client of the official TypeScript SDK, version 1 or 2, that does what lines on standard input say, each a command in JSON, and
// answers each with a line. What a server says by itself is a line, too. Commands run beside each other.
import { createInterface } from "node:readline";

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const running = new Map(); // the calls that can be cancelled, by their keys
let client, version, answers = {};

async function connect(c) {
  version = c.sdk;
  answers = c.answers ?? {};
  const v1 = version === 1;
  const { Client } = await import(v1 ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
  const types = v1 ? await import("@modelcontextprotocol/sdk/types.js") : {};
  let transport;
  if (c.url) {
    const { StreamableHTTPClientTransport } = await import(v1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client");
    transport = new StreamableHTTPClientTransport(new URL(c.url), { requestInit: { headers: c.headers } });
  } else {
    const { StdioClientTransport } = await import(v1 ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio");
    transport = new StdioClientTransport({ command: c.command, args: c.args, env: { ...process.env, ...c.env }, cwd: c.cwd, stderr: "inherit" });
  }
  const capabilities = {};
  if (answers.elicitation) capabilities.elicitation = { form: {}, url: {} };
  if (answers.sampling) capabilities.sampling = {};
  if (answers.roots) capabilities.roots = { listChanged: true };
  const options = { capabilities };
  if (!v1) options.versionNegotiation = { mode: c.era ?? "auto", probe: { timeoutMs: 10_000 } };
  client = new Client({ name: "foreign", version: "1" }, options);
  const answer = (method, schema, value) => {
    if (value === undefined) return;
    client.setRequestHandler(v1 ? types[schema] : method, async (request) => {
      say({ event: method, params: request.params });
      return value;
    });
  };
  answer("elicitation/create", "ElicitRequestSchema", answers.elicitation);
  answer("sampling/createMessage", "CreateMessageRequestSchema", answers.sampling);
  answer("roots/list", "ListRootsRequestSchema", answers.roots);
  client.fallbackNotificationHandler = async (n) => say({ event: n.method, params: n.params });
  client.onclose = () => say({ event: "closed" });
  client.onerror = (e) => process.stderr.write(`client: ${e?.message}\n`);
  await client.connect(transport, { timeout: c.timeoutMs });
  return {
    server: client.getServerVersion(), capabilities: client.getServerCapabilities(), instructions: client.getInstructions(),
    version: transport.protocolVersion ?? client.getNegotiatedProtocolVersion?.(),
  };
}

const members = { tools: "listTools", resources: "listResources", templates: "listResourceTemplates", prompts: "listPrompts" };

async function list(what) {
  const all = [];
  let cursor;
  do {
    const page = await client[members[what]](cursor === undefined ? undefined : { cursor });
    all.push(...(page.tools ?? page.resources ?? page.resourceTemplates ?? page.prompts));
    cursor = version === 1 ? page.nextCursor : undefined; // version 2 gives all pages at once
  } while (cursor !== undefined);
  return all;
}

async function call(c) {
  const abort = new AbortController();
  if (c.key) running.set(c.key, abort);
  const options = { timeout: c.timeoutMs ?? 60_000, signal: abort.signal };
  if (c.progress) options.onprogress = (p) => say({ event: "progress", params: p });
  const params = { name: c.name, arguments: c.args };
  try {
    return await (version === 1 ? client.callTool(params, undefined, options) : client.callTool(params, options));
  } finally {
    running.delete(c.key);
  }
}

// runTask calls a tool as a task and returns what is said of the task until its end; with cancel it cancels the task at once.
async function runTask(c) {
  const tasks = client.experimental.tasks;
  const states = [];
  let id, end;
  for await (const m of tasks.callToolStream({ name: c.name, arguments: c.args }, undefined, { task: { ttl: 60_000 }, timeout: c.timeoutMs ?? 60_000 })) {
    if (m.type === "taskCreated") id = m.task.taskId;
    if (m.type === "taskCreated" && c.cancel) {
      return { cancelled: await tasks.cancelTask(id), after: await tasks.getTask(id) };
    }
    states.push(m.task?.status ?? m.type);
    end = m.result ?? m.error?.message;
  }
  const listed = client.getServerCapabilities().tasks.list && (await tasks.listTasks()).tasks.some((t) => t.taskId === id);
  return { id, states, end, listed, after: await tasks.getTask(id) };
}

async function perform(c) {
  switch (c.do) {
    case "connect": return connect(c);
    case "list": return list(c.what);
    case "call": return call(c);
    case "task": return runTask(c);
    case "cancel": return running.get(c.key)?.abort("the test said so");
    case "read": return client.readResource({ uri: c.uri });
    case "prompt": return client.getPrompt({ name: c.name, arguments: c.args });
    case "complete": return client.complete(c.params);
    case "subscribe": return client.subscribeResource({ uri: c.uri });
    case "unsubscribe": return client.unsubscribeResource({ uri: c.uri });
    case "listen": return (await client.listen(c.filter)).honoredFilter ?? {};
    case "level": return client.setLoggingLevel(c.level);
    case "ping": return client.ping();
    case "close":
      await client.transport?.terminateSession?.();
      return client.close();
  }
  throw new Error(`unknown command ${c.do}`);
}

const lines = createInterface({ input: process.stdin });
lines.on("line", async (text) => {
  const c = JSON.parse(text);
  try {
    say({ id: c.id, value: (await perform(c)) ?? null });
  } catch (e) {
    say({ id: c.id, error: { code: e?.code ?? null, message: String(e?.message ?? e), data: e?.data ?? null } });
  }
});
lines.on("close", () => process.exit(0));
