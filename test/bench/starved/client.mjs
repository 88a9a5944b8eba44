// The client of the TypeScript SDK in the comparison: it connects servers over stdio and lists their tools, some at a time.
//
//   node client.mjs FOLDER SERVERS AT-A-TIME COMMAND [ARG...]   the SDK is installed in FOLDER; one line of JSON is printed
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, servers, slots, command, ...args] = process.argv.slice(2);
const { resolve } = createRequire(join(folder, "package.json"));
// The packages' entry for require and the one for import stand side by side.
const load = (name) => import(pathToFileURL(resolve(name).replace("/dist/cjs/", "/dist/esm/")));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");

const timeout = 10 * 60 * 1000;
const begin = performance.now();
const clients = [];
let connected = 0;
let next = 0;

async function connectSome() {
  while (next < Number(servers)) {
    next++;
    const client = new Client({ name: "starved", version: "1" });
    clients.push(client);
    try {
      await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }), { timeout });
      await client.listTools(undefined, { timeout });
      connected++;
    } catch (error) {
      console.error(String(error));
    }
  }
}

await Promise.all(Array.from({ length: Number(slots) }, connectSome));
const took = performance.now() - begin;
await Promise.allSettled(clients.map((client) => client.close()));
console.log(JSON.stringify({ Connected: connected, Took: Math.round(took * 1e6) }));
