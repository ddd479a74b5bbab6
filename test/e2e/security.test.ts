/** Connections without rights are refused, and a connection can do no more than its token allows. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, it } from "node:test";
import { startFakeModel } from "../fakes/fake-model.ts";
import { Client, Machine, until, WireError } from "./support.ts";

/** Status of a WebSocket upgrade with these headers; 101 is closed at once. */
function upgrade(port: number, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const asking = request({
      host: "127.0.0.1",
      port,
      path: "/ws",
      headers: {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        ...headers,
      },
    });
    asking.on("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asking.on("upgrade", (_, socket) => {
      socket.destroy();
      resolve(101);
    });
    asking.on("error", reject);
    asking.end();
  });
}

describe("access", () => {
  const machine = new Machine();
  before(() => machine.up());
  after(() => machine.end());

  async function refused(work: Promise<unknown>, reason: string): Promise<void> {
    await assert.rejects(work, (error: unknown) => error instanceof WireError && error.reason === reason);
  }

  it("[S1] only /health is open", async () => {
    const at = (path: string, headers: Record<string, string> = {}): Promise<number> =>
      fetch(`http://127.0.0.1:${machine.port}${path}`, { headers }).then(
        (response) => response.body?.cancel().then(() => response.status) ?? response.status,
      );
    assert.equal(await at("/health"), 200);
    assert.ok([401, 404].includes(await at("/")));
    for (const path of ["/jobs", "/openapi.json"]) assert.equal(await at(path), 401, path);
  });

  it("[S2] [H7] a foreign browser origin is refused before the upgrade; a program sends none", async () => {
    assert.equal(await upgrade(machine.port, { Origin: "https://evil.example" }), 403);
    assert.equal(await upgrade(machine.port, { Origin: "null" }), 403);
    assert.equal(await upgrade(machine.port, {}), 101);
  });

  it("[S2] [TH9] a foreign Host (DNS rebinding) is refused", async () => {
    assert.equal(await upgrade(machine.port, { Host: "evil.example" }), 403);
    assert.equal(await upgrade(machine.port, { Host: `localhost:${machine.port}` }), 101);
  });

  for (const [what, token] of [
    ["a missing", undefined],
    ["a wrong", `gsv_admin_aaaaaaaaaa_${"0".repeat(64)}`],
    ["a malformed", "x"],
    ["[X20] a multibyte", "é".repeat(64)],
  ] as const) {
    it(`[H2] ${what} token is refused and the socket closed`, async () => {
      const client = await Client.open(machine.url);
      const answer = client.call("connect", {
        minProtocol: 1,
        maxProtocol: 1,
        client: { id: "x", version: "1", platform: "test", mode: "client" },
        ...(token === undefined ? {} : { auth: { token } }),
      });
      await refused(answer, "auth.required");
      assert.equal((await client.untilClosed()).code, 4001);
    });
  }

  it("[H1] [S1] nothing but connect comes first", async () => {
    const client = await Client.open(machine.url);
    await refused(client.call("config.get", {}), "protocol.not_connected");
    assert.equal((await client.untilClosed()).code, 4000);
  });

  it("[FR1] [FR2] junk is answered with a code, and the connection stays", async () => {
    const client = await machine.client();
    for (const junk of [
      "{",
      "[]",
      '{"type":"req"}',
      "x".repeat(1_048_577),
      `{"type":"req","id":"d","method":"tools.list","params":${"[".repeat(40)}${"]".repeat(40)}}`,
    ])
      client.sendRaw(junk);
    await refused(client.call("no.such.method"), "protocol.unknown_method");
    await client.call("tools.list");
    assert.equal(client.closed, undefined);
    client.close();
  });

  it("[X4] a path into the prototype is an unknown setting", async () => {
    const client = await machine.client();
    for (const path of ["__proto__.polluted", "constructor.prototype.x", "model.__proto__"])
      await refused(client.call("config.set", { path, value: "yes" }), "config.unknown_path");
    client.close();
  });

  it("[S3] [X2] a node's token is bound to its node and has no rights of a client", async () => {
    const admin = await machine.client();
    const { token } = await admin.call("tokens.create", { kind: "node", nodeId: "bound" });
    const asNode = (id: string, mode: string): Promise<Client> =>
      machine.client({
        token: String(token),
        params: {
          client: { id, version: "1", platform: "test", mode },
          ...(mode === "node" ? { tools: [], nodeRuntime: { hostCapabilities: [], toolCapabilities: {} } } : {}),
        },
      });
    await refused(asNode("other", "node"), "auth.bound");
    await refused(asNode("bound", "client"), "auth.forbidden");
    const node = await asNode("bound", "node");
    for (const [method, params] of [
      ["config.get", { path: "apiKeys" }],
      ["config.set", { path: "toolApproval.defaultDecision", value: "allow" }],
      ["chat.send", { sessionKey: "main", message: "x" }],
      ["tokens.create", { kind: "admin" }],
      ["workspace.write", { path: "SOUL.md", content: "x" }],
      ["audit.list", {}],
    ] as const) {
      await refused(node.call(method, params), "auth.forbidden");
    }
    node.close();
    admin.close();
  });

  it("[S4] a revoked token's connections are closed at once, and it opens no other", async () => {
    const admin = await machine.client();
    const made = await admin.call("tokens.create", { kind: "client" });
    const holder = await machine.client({ token: String(made["token"]) });
    await holder.call("tools.list");
    await admin.call("tokens.revoke", { tokenId: (made["entry"] as { tokenId: string }).tokenId });
    await until("the holder's socket is closed", () => holder.closed, 2_000);
    await refused(machine.client({ token: String(made["token"]) }), "auth.required");
    const list = JSON.stringify(await admin.call("tokens.list"));
    assert.equal(list.includes(String(made["token"])), false);
    admin.close();
  });

  it("[H4] a second connection with the same id replaces the first", async () => {
    const first = await machine.client({ id: "same" });
    const second = await machine.client({ id: "same" });
    assert.equal((await first.untilClosed()).code, 1000);
    await second.call("tools.list");
    second.close();
  });

  it("[S17] [F80] what a client sends is logged without the tokens in it", async () => {
    const secret = machine.token.split("_").at(-1) ?? "";
    assert.ok(secret.length >= 32);
    const client = await machine.client({ id: machine.token });
    client.sendRaw(new TextEncoder().encode(`....${machine.token}`));
    await until("the stray frame is in the log", () => machine.gatewayLog().includes("stray_chunk"));
    assert.equal(machine.gatewayLog().includes(secret), false);
    client.close();
  });
});

describe("stored secrets in results of the gateway's own tools", () => {
  const machine = new Machine();
  before(() => machine.up());
  after(() => machine.end());

  it("[F10] [S5] a stored key that stands in a workspace file reaches no result", async () => {
    const fake = await startFakeModel();
    try {
      await machine.useModel(fake);
      const owner = await machine.client();
      const key = "sk-secret-abcdefgh-0123456789";
      await owner.call("config.set", { path: "apiKeys.anthropic", value: key });
      await owner.call("workspace.write", { agentId: "main", path: "notes.md", content: `my key ${key} end\n` });
      const run = await owner.say('call gsv__ReadFile {"path":"notes.md"}');
      await owner.waitForChat("the answer", ({ runId, state }) => runId === run && state === "final");
      assert.ok(fake.requests.length >= 2);
      assert.ok(!JSON.stringify(fake.requests.map(({ body }) => body)).includes(key));
    } finally {
      await fake.close();
    }
  });
});
