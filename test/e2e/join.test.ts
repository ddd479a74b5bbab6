/** `gsv invite` and `gsv join`: two homes as two machines, with TLS between them. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { freePort, Machine, until } from "./support.ts";

const HOST = "127.0.0.2";

describe("other machines join", () => {
  const here = new Machine();
  const there = new Machine();
  const third = new Machine();
  let port: number;
  let relay: Server | undefined;

  before(async () => {
    await here.usePort();
    port = await freePort();
  });
  after(async () => {
    relay?.close();
    await third.end();
    await there.end();
    await here.end();
  });

  const invite = async (...args: string[]): Promise<string> => {
    const line = (await here.ok("invite", ...args)).trim();
    const code = /^gsv join (gsv1-[\w-]+)$/.exec(line)?.[1];
    assert(code !== undefined, line);
    return code;
  };
  const fails = async (machine: Machine, status: number, says: RegExp, ...args: string[]): Promise<void> => {
    const { code, stdout, stderr } = await machine.gsv(args);
    assert.equal(code, status, `${stdout}\n${stderr}`);
    assert.match(stderr, says);
  };
  const nodeTokens = async (): Promise<number> => {
    const { tokens } = JSON.parse(await here.ok("token", "list", "--json")) as { tokens: readonly { kind: string }[] };
    return tokens.filter(({ kind }) => kind === "node").length;
  };
  const config = (machine: Machine): string => join(machine.configFolder, "config.toml");

  it("[RM10] a gateway that listens only here says what to do", async () => {
    await here.ok("up");
    await fails(here, 1, /gsv up --listen/, "invite", "node");
    await here.ok("down");
    await here.ok("up", "--listen", `${HOST}:${port}`);
    await here.ok("config", "set", "toolApproval.defaultDecision", "allow");
  });

  it("[RM10] [RM4] a machine joins with the pasted line, and a tool runs on it over TLS", async () => {
    const code = await invite("node");
    const began = Date.now();
    await there.ok("join", code, "--id", "laptop");
    const stored = readFileSync(config(there), "utf8");
    assert.match(stored, new RegExp(`url = "wss://${HOST}:${port}/ws#sha256=[0-9a-f]{64}"`));
    assert.doesNotMatch(stored, /gsv_(?:admin|client)_/);
    assert.equal(statSync(config(there)).mode & 0o777, 0o600);
    assert(!existsSync(join(there.configFolder, "join.json")));
    there.port = here.port;
    const child = there.node("laptop");
    // It waits with a token that a node has not; this machine asks instead.
    child.catch(() => undefined);
    await here.online("laptop");
    assert.match(await here.ok("tools", "call", "laptop__Bash", "command=echo from-$((20+22))"), /from-42/);
    assert(Date.now() - began < 10_000);
    await fails(there, 1, /used already/, "join", code, "--yes", "--id", "desk");
  });

  it("[RM12] an invitation that the wrong person saw is taken back", async () => {
    const code = await invite("node", "--name", "seen");
    const [, id = ""] = /^(\w+) +node +seen /m.exec(await here.ok("invite", "list")) ?? [];
    await here.ok("invite", "revoke", id);
    await fails(third, 1, /was revoked/, "join", code, "--yes");
    await fails(here, 1, /gsv invite list/, "invite", "revoke", id);
    await invite("client");
    await here.ok("invite", "revoke", "all");
    assert.match(await here.ok("invite", "list"), /No invitation/);
  });

  it("[RM8] wrong and damaged codes have messages of their own", async () => {
    const code = await invite("client");
    const damaged = `${code.slice(0, 40)}${code[40] === "A" ? "B" : "A"}${code.slice(41)}`;
    await fails(third, 2, /typing error/, "join", damaged);
    await fails(third, 2, /not a join code/, "join", "hello");
    // The code of another gateway's certificate: the same secret, another fingerprint.
    const bytes = Buffer.from(code.slice(5), "base64url");
    bytes[10] = (bytes[10] ?? 0) ^ 1;
    const check = await crypto.subtle.digest("SHA-256", bytes.subarray(0, -4));
    Buffer.from(check).copy(bytes, bytes.length - 4, 0, 4);
    await fails(third, 3, /another certificate/, "join", `gsv1-${bytes.toString("base64url")}`);
    assert(!existsSync(config(third)));
    await third.ok("join", code);
    assert.equal((JSON.parse(await third.ok("status", "--json")) as { reachable: boolean }).reachable, true);
    await fails(third, 3, /admin token/, "token", "list");
  });

  it("[RM11] a config for another gateway is replaced only with a yes, and kept beside it", async () => {
    const former = 'url = "wss://other.example/ws"\ntoken = "other-token-of-another-gateway"\n';
    const other = new Machine();
    try {
      await other.ok("local-config", "set", "url", "wss://other.example/ws");
      await other.gsv(["local-config", "set", "token", "-"], { input: "other-token-of-another-gateway" });
      assert.equal(readFileSync(config(other), "utf8"), former);
      const code = await invite("client", "--name", "desk");
      await fails(other, 2, /--yes/, "join", code);
      assert.equal(readFileSync(config(other), "utf8"), former);
      await other.ok("join", code, "--yes");
      assert.equal(readFileSync(join(other.configFolder, "config.toml.old"), "utf8"), former);
      assert.doesNotMatch(readFileSync(config(other), "utf8"), /other-token/);
      assert.match(await here.ok("token", "list"), /desk/);
    } finally {
      await other.end();
    }
  });

  it("[RM9] a join whose answers are lost is completed by the same line, with one token", async () => {
    const before = await nodeTokens();
    let isLosing = true;
    relay = createServer((client: Socket) => {
      const server = connect(port, HOST);
      let sent = 0;
      client.on("data", (data) => {
        sent++;
        server.write(data);
      });
      server.on("data", (data) => {
        // The first message of the client is its hello. What the server says after the second one is lost, with the connection.
        if (!isLosing || sent < 2) client.write(data);
        else
          void until("the token is made", async () => (await nodeTokens()) === before + 1).then(
            () => client.destroy(),
            () => client.destroy(),
          );
      });
      for (const socket of [client, server])
        socket
          .on("error", () => undefined)
          .on("close", () => {
            client.destroy();
            server.destroy();
          });
    });
    const relayPort = await freePort();
    await new Promise<void>((resolve) => relay?.listen(relayPort, HOST, resolve));
    const code = await invite("node", "--address", `${HOST}:${relayPort}`, "--name", "lost");
    const fourth = new Machine();
    try {
      await fails(fourth, 4, /still valid/, "join", code);
      assert.equal(await nodeTokens(), before + 1);
      assert.equal(statSync(join(fourth.configFolder, "join.json")).mode & 0o777, 0o600);
      isLosing = false;
      await fourth.ok("join", code);
      assert.equal(await nodeTokens(), before + 1);
      assert.match(readFileSync(config(fourth), "utf8"), /token = "gsv_node_/);
    } finally {
      await fourth.end();
    }
  });
});
