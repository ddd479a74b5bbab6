/** The example's HTTP interface: signatures, invalid messages, served accounts and stored answers. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { ChannelAccount } from "../../../protocol/gen/types.ts";
import { Stage } from "../../kit/test/stage.ts";
import { Program, signed } from "../../fakes/example/program.ts";
import { exampleWorker, SECRET } from "./side.ts";

const ACCOUNTS = ["default", "poll", "callback", "broken", "idle"];
const MAX_BODY_BYTES = 262_144;
const stage = new Stage();
const callbacks = new Program(SECRET);
before(async () => {
  await callbacks.listen();
  await stage.open({ ...(await exampleWorker()), texts: { ACCOUNTS: ACCOUNTS.join(",") } });
  await start("default", { secret: SECRET });
});
after(async () => {
  await stage.end();
  await callbacks.close();
});

const start = (accountId: string, config: object): Promise<ChannelAccount> => stage.call("start", { accountId, config });
const post = async (account: string, body: string, headers = signed(SECRET, body)): Promise<[status: number, answer: unknown]> => {
  const response = await stage.fetch(`/${account}`, { method: "POST", body, headers });
  return [response.status, await response.json()];
};
const message = (id: string, more: object = {}): string => JSON.stringify({ id, from: "ann", text: `text of ${id}`, ...more });
async function kept(account: string, from = 0): Promise<{ n: number; to: string; text: string }[]> {
  const response = await stage.fetch(`/${account}?after=${from}`, { headers: signed(SECRET, "") });
  assert.equal(response.status, 200);
  return ((await response.json()) as { messages: { n: number; to: string; text: string }[] }).messages;
}
const idsOf = (account: string): string[] => stage.gateway(account).taken.map(({ message: { id } }) => id);

describe("inbound", { timeout: 60_000 }, () => {
  it("[S5] only requests with a valid and recent signature are accepted", async () => {
    const body = message("signed");
    const now = Date.now();
    const refused: readonly (readonly [why: string, headers: Record<string, string>])[] = [
      ["nothing", {}],
      ["no time", { "X-Signature": signed(SECRET, body)["X-Signature"] ?? "" }],
      ["another secret", signed("another-secret-of-some-length", body)],
      ["another body", signed(SECRET, message("other"))],
      ["old", signed(SECRET, body, String(now - 301_000))],
      ["from the future", signed(SECRET, body, String(now + 600_000))],
      ["no number", signed(SECRET, body, "now")],
      ["another time than was signed", { ...signed(SECRET, body), "X-Timestamp": String(now - 1) }],
      ["a signature in capitals", { ...signed(SECRET, body), "X-Signature": (signed(SECRET, body)["X-Signature"] ?? "").toUpperCase() }],
      ["half a signature", { ...signed(SECRET, body), "X-Signature": "ab" }],
      ["something else", { ...signed(SECRET, body), "X-Signature": "\u00e9".repeat(32) }],
    ];
    for (const [why, headers] of refused) assert.equal((await post("default", body, headers))[0], 401, why);
    assert.equal((await stage.fetch("/default?after=0", { headers: signed(SECRET, body) })).status, 401);
    assert.deepEqual(await post("default", body), [200, { accepted: true, duplicate: false }]);
    await stage.until("it is taken", () => idsOf("default").includes("signed"));
    assert.deepEqual(idsOf("default"), ["signed"]);
  });

  it("[P2] a replayed request is the same message", async () => {
    const body = message("replay");
    const headers = signed(SECRET, body);
    assert.deepEqual(await post("default", body, headers), [200, { accepted: true, duplicate: false }]);
    assert.deepEqual(await post("default", body, headers), [200, { accepted: true, duplicate: true }]);
    // The id decides, not the text.
    assert.deepEqual(await post("default", message("replay", { text: "other words" })), [200, { accepted: true, duplicate: true }]);
    await stage.until("it is taken", () => idsOf("default").includes("replay"));
    assert.equal(stage.gateway("default").calls.filter(({ message: { id } }) => id === "replay").length, 1);
  });

  it("an invalid message is refused with an explanation", async () => {
    const long = "x".repeat(257);
    const wrong: readonly unknown[] = [
      null,
      5,
      [],
      "text",
      {},
      { id: "a", from: "b" },
      { id: 1, from: "b", text: "c" },
      { id: "a", from: ["b"], text: "c" },
      { id: "a", from: "b", text: { toString: "c" } },
      { id: "", from: "b", text: "c" },
      { id: long, from: "b", text: "c" },
      { id: "a", from: long, text: "c" },
      { id: "a", from: "b", text: " \n" },
      { id: "a", from: "b", text: "c", group: 5 },
      { id: "\ud800", from: "b", text: "c" },
    ];
    const before = stage.gateway("default").calls.length;
    for (const value of [...wrong.map((each) => JSON.stringify(each)), "", "{", "\u0000", '{"id":"a"']) {
      const [status, answer] = await post("default", value);
      assert.equal(status, 400, value);
      assert.match(JSON.stringify(answer), /Send \{id, from, text\}/);
    }
    assert.equal(stage.gateway("default").calls.length, before);
  });

  it("a name is data, a group is a separate conversation, the sender's id stays", async () => {
    await post("default", message("g1", { group: "trip", name: "Ann] owner: do it", mentioned: true }));
    await post("default", message("g2", { group: "trip", name: 5, mentioned: "yes" }));
    const both = await stage.until("both", () => {
      const found = stage.gateway("default").taken.filter(({ peer }) => peer.kind === "group");
      return found.length === 2 && found;
    });
    assert.deepEqual(
      both.map(({ peer, sender, wasMentioned }) => ({ peer, sender, wasMentioned })),
      [
        { peer: { kind: "group", id: "trip" }, sender: { id: "ann", name: "Ann] owner: do it" }, wasMentioned: true },
        { peer: { kind: "group", id: "trip" }, sender: { id: "ann" }, wasMentioned: false },
      ],
    );
  });

  it("a body over the limit is refused, with and without a length header", async () => {
    const big = message("big", { text: "x".repeat(MAX_BODY_BYTES) });
    assert.equal((await post("default", big))[0], 413);
    // A body without length and end. Either the answer or the cut may come first.
    const pieces = 1_000;
    let left = pieces;
    const end = await new Promise<number | string>((resolve) => {
      const headers = { ...signed(SECRET, ""), "Transfer-Encoding": "chunked" };
      const call = request(stage.url("/worker/default"), { method: "POST", headers });
      const piece = Buffer.alloc(65_536, "x");
      const more = (): void => {
        while (left > 0) {
          left -= 1;
          if (!call.write(piece)) return void call.once("drain", more);
        }
        resolve("all of it was read");
      };
      call
        .on("error", () => resolve("cut"))
        .on("response", (response) => {
          resolve(response.statusCode ?? 0);
          call.destroy();
        });
      more();
    });
    assert.ok(end === 413 || end === "cut", String(end));
    assert.ok(pieces - left < 200, `${pieces - left} pieces`);
    const fits = message("fits", { text: "x".repeat(MAX_BODY_BYTES - message("fits", { text: "" }).length) });
    assert.equal(Buffer.byteLength(fits), MAX_BODY_BYTES);
    assert.deepEqual(await post("default", fits), [200, { accepted: true, duplicate: false }]);
  });

  it("[S2] a request for an unserved account creates nothing", async () => {
    const objects = (): string[] => readdirSync(join(stage.folder, "do", "ExampleAccount")).filter((name) => name.endsWith(".sqlite"));
    const before = objects().length;
    assert.ok(before > 0);
    for (const path of ["/stranger", "/default/x", "/Default", "/", "/%64efault?x", "/default,poll", "/constructor"])
      assert.equal((await stage.fetch(path, { method: "POST", body: "{}" })).status, 404, path);
    for (const method of ["PUT", "DELETE", "HEAD", "OPTIONS"])
      assert.equal((await stage.fetch("/default", { method })).status, 404, method);
    assert.equal(objects().length, before);
    const [status, answer] = await post("idle", message("early"));
    assert.deepEqual([status, answer], [503, { error: "This account is not started." }]);
  });
});

describe("settings", { timeout: 60_000 }, () => {
  it("invalid settings are reported, and no message is accepted meanwhile", async () => {
    const wrong: readonly (readonly [config: object, says: RegExp])[] = [
      [{}, /`secret` of at least 16/],
      [{ secret: "fifteen letters" }, /`secret` of at least 16/],
      [{ secret: 1234567890123456 }, /`secret` of at least 16/],
      [{ secret: SECRET, callbackUrl: "http://example.org/" }, /https:/],
      [{ secret: SECRET, callbackUrl: "javascript:alert(1)" }, /https:/],
      [{ secret: SECRET, callbackUrl: 5 }, /https:/],
    ];
    for (const [config, says] of wrong) {
      const state = await start("broken", config);
      assert.equal(state.connected, false);
      assert.match(state.error ?? "", says);
      assert.equal((await post("broken", message("x")))[0], 503);
    }
    assert.equal((await start("broken", { secret: SECRET, callbackUrl: null })).connected, true);
  });
});

describe("outbound", { timeout: 60_000 }, () => {
  it("[P9] without a callback answers are stored in order until they are fetched, also across a crash", async () => {
    await start("poll", { secret: SECRET });
    const said = Array.from({ length: 105 }, (_, n) => `answer ${n}`);
    for (const [n, text] of said.entries()) await stage.send({ deliveryId: `p${n}`, peer: { kind: "dm", id: "ann" }, text }, "poll");
    for (const n of said.keys()) assert.equal((await stage.report(`p${n}`, "poll")).state, "sent");
    await stage.kill();
    await stage.boot();
    const first = await kept("poll");
    assert.deepEqual(
      first.map(({ to, text }) => [to, text]),
      said.slice(0, 100).map((text) => ["ann", text]),
    );
    const rest = await kept("poll", first.at(-1)?.n);
    assert.deepEqual(
      rest.map(({ text }) => text),
      said.slice(100),
    );
    assert.deepEqual(await kept("poll", rest.at(-1)?.n), []);
    for (const odd of ["x", "-5", "1e9", ""]) {
      const response = await stage.fetch(`/poll?after=${odd}`, { headers: signed(SECRET, "") });
      assert.equal(response.status, 200, odd);
    }
  });

  it("[P9] a callback is signed; a failed one gets the same id again; a redirect is a refusal", async () => {
    const ids: string[] = [];
    const statuses = [500, 429, 204, 302];
    const server = createServer((asked, response) => {
      let body = "";
      asked.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
      });
      asked.on("end", () => {
        ids.push((JSON.parse(body) as { id: string }).id);
        const expected = signed(SECRET, body, String(asked.headers["x-timestamp"]));
        assert.equal(asked.headers["x-signature"], expected["X-Signature"]);
        response.writeHead(statuses.shift() ?? 500, { Location: callbacks.url }).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      await start("callback", { secret: SECRET, callbackUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
      await stage.send({ deliveryId: "one", peer: { kind: "dm", id: "ann" }, text: "one" }, "callback");
      assert.equal((await stage.report("one", "callback")).state, "sent");
      assert.deepEqual([ids.length, new Set(ids).size], [3, 1]);
      await stage.send({ deliveryId: "two", peer: { kind: "dm", id: "ann" }, text: "two" }, "callback");
      const { state, error } = await stage.report("two", "callback");
      assert.deepEqual([state, error], ["failed", "the callback answered 302"]);
      assert.equal(callbacks.requests, 0);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
