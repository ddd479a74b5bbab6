/** [HB9] The network that the program gives the gateway for pages of conditions, in raw workerd: it connects to no address of this machine. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { RawWorkerd } from "../test/support/raw-workerd.ts";

const here = dirname(fileURLToPath(import.meta.url));
/** As the program writes it. */
const line = (name: string): string => {
  const found = new RegExp(`\\(name = "${name}", network = .*\\)\\)`).exec(
    readFileSync(join(here, "../../cli/src/embedded/capnp.rs"), "utf8"),
  );
  assert(found !== null, `the program's configuration has no network ${name}`);
  return found[0];
};
const APP = `export default { async fetch(request, env) {
  const { searchParams } = new URL(request.url);
  try {
    const response = await env[searchParams.get("by")].fetch(searchParams.get("url"));
    return new Response("reached " + response.status);
  } catch (error) {
    return new Response("failed");
  }
} };`;

describe("[HB9] the network of public addresses", () => {
  const folder = mkdtempSync(join(tmpdir(), "gsv-public-"));
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end("private");
  });
  let workerd: RawWorkerd;
  let port = 0;
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
    const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "app", worker = .app),
    ${line("public-web")},
    (name = "any", network = (allow = ["public", "private", "local"]))
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "app")]
);
const app :Workerd.Worker = (
  modules = [(name = "app.js", esModule = embed "app.js")], compatibilityDate = "2026-11-01",
  bindings = [(name = "PUBLIC_WEB", service = "public-web"), (name = "ANY", service = "any")]
);
`;
    workerd = await RawWorkerd.start(folder, config, { "app.js": APP });
  });
  after(async () => {
    await workerd.kill();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const ask = async (by: "PUBLIC_WEB" | "ANY", host: string): Promise<string> => {
    const url = encodeURIComponent(`http://${host}:${port}/${by}`);
    return (await fetch(`${workerd.url}/?by=${by}&url=${url}`)).text();
  };

  it("refuses addresses of this machine, also behind a name, which another network reaches", async () => {
    for (const host of ["127.0.0.1", "localhost", "127.1"]) {
      assert.equal(await ask("ANY", host), "reached 200", host);
      assert.equal(await ask("PUBLIC_WEB", host), "failed", host);
    }
    assert.deepEqual(asked, ["/ANY", "/ANY", "/ANY"]);
  });
});
