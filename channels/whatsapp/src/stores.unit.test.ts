/** Keys, recent messages and inbound files on a plain SQLite. */
import assert from "node:assert/strict";
import { createCipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import type { ChannelInbound } from "../../../protocol/gen/types.ts";
import { memoryDatabase } from "../../kit/test/world.ts";
import type { InboundItem, PlatformHost } from "../../kit/src/platform.ts";
import { AuthStore, clearAuth, isPaired, pairedAs } from "./auth-store.ts";
import { addressOf, open, readReference } from "./media.ts";
import type { Receipt } from "./map-inbound.ts";
import { MessageStore } from "./message-store.ts";
import { OfflineGap } from "./offline-gap.ts";
import { MAX_RECEIPTS, Receipts } from "./receipts.ts";

type Store = Pick<PlatformHost, "kv" | "transaction" | "now" | "take" | "log"> & {
  full: boolean;
  time: number;
  readonly taken: InboundItem[];
};
function store(): Store {
  const db = memoryDatabase();
  db.query("CREATE TABLE kv(name TEXT PRIMARY KEY, value TEXT)");
  const self: Store = {
    full: false,
    time: 1_000_000,
    taken: [],
    kv: {
      get: <T>(name: string) => {
        const [row] = db.query<{ value: string }>("SELECT value FROM kv WHERE name = ?", name);
        return row && (JSON.parse(row.value) as T);
      },
      put: (name, value) => void db.query("INSERT OR REPLACE INTO kv VALUES(?, ?)", name, JSON.stringify(value)),
      delete: (name) => void db.query("DELETE FROM kv WHERE name = ?", name),
      keys: (prefix) =>
        db
          .query<{ name: string }>("SELECT name FROM kv ORDER BY name")
          .map(({ name }) => name)
          .filter((name) => name.startsWith(prefix)),
    },
    transaction: (work) => db.transaction(work),
    now: () => self.time,
    take: (item) => {
      if (self.full) throw new Error("the inbox is full");
      if (self.taken.some(({ key }) => key === item.key)) return false;
      self.taken.push(item);
      return true;
    },
    log: () => {},
  };
  return self;
}
/** The parts of the host that the stores use. */
const hostOf = (own: Store): PlatformHost => ({
  ...own,
  accountId: "default",
  readFile: async () => null,
  changed() {},
  after: () => () => {},
  now: () => own.time,
  take: (item) => own.take(item),
});
const item = (key: string, at = 5): InboundItem => ({
  key,
  inbound: { peer: { kind: "dm", id: "1@lid" }, message: { id: key, text: `text of ${key}` }, receivedAt: at } satisfies ChannelInbound,
  files: [],
});

describe("read receipts", () => {
  const key = (id: string, remoteJid = "1@lid", participant?: string): Receipt => ({
    remoteJid,
    id,
    ...(participant === undefined ? {} : { participant }),
  });
  const names = (calls: readonly (readonly Receipt[])[]): string[] => calls.map((keys) => keys.map(({ id }) => id).join(" "));

  test("[F92] one receipt for all messages of a sender in a chat, deleted when WhatsApp has it", async () => {
    const calls: (readonly Receipt[])[] = [];
    const receipts = new Receipts(
      hostOf(store()),
      () => true,
      async (keys) => calls.push(keys) > 0,
    );
    for (let n = 0; n < 100; n++) receipts.add(key(`a${n}`));
    receipts.add(key("a5"));
    receipts.add(key("g1", "2@g.us", "1@lid"));
    receipts.add(key("g2", "2@g.us", "3@lid"));
    receipts.add(key("g3", "2@g.us", "1@lid"));
    await receipts.flush();
    assert.deepEqual(calls.map((keys) => keys.length).toSorted(), [1, 100, 2].toSorted());
    assert.deepEqual(new Set(names(calls).slice(1)), new Set(["g1 g3", "g2"]));
    assert.equal(receipts.waiting(), 0);
    await receipts.flush();
    assert.equal(calls.length, 3);
  });
  test("[F92] what failed or met no connection is sent later, also by another instance, and what came meanwhile is kept", async () => {
    const own = store();
    let isUp = false;
    let outcome: "no" | "throws" | "sent" = "sent";
    const sent: string[] = [];
    const begin = (): Receipts =>
      new Receipts(
        hostOf(own),
        () => isUp,
        async (keys) => {
          if (outcome === "throws") throw new Error("the connection broke");
          if (outcome === "sent") sent.push(...keys.map(({ id }) => id));
          if (sent.length === 2) second.add(key("c"));
          return outcome === "sent";
        },
      );
    const first = begin();
    first.add(key("a"));
    await first.flush();
    isUp = true;
    outcome = "throws";
    await first.flush();
    outcome = "no";
    await first.flush();
    assert.deepEqual([sent, first.waiting()], [[], 1]);
    const second = begin();
    second.add(key("b"));
    outcome = "sent";
    await second.flush();
    assert.deepEqual([sent, second.waiting()], [["a", "b"], 1]);
    await second.flush();
    assert.deepEqual([sent, second.waiting()], [["a", "b", "c"], 0]);
  });
  test("[F92] the number of unsent receipts is bounded", () => {
    const receipts = new Receipts(
      hostOf(store()),
      () => false,
      async () => true,
    );
    for (let n = 0; n < MAX_RECEIPTS + 5; n++) receipts.add(key(`a${n}`));
    assert.equal(receipts.waiting(), MAX_RECEIPTS);
  });
});

describe("keys", () => {
  test("[P12] a device is linked when it has an owner and WhatsApp's signature", () => {
    for (const [creds, expected] of [
      [undefined, false],
      [{}, false],
      [{ me: { id: "1@s.whatsapp.net" } }, false],
      [{ account: {} }, false],
      [{ me: { id: "" }, account: {} }, false],
      [{ me: { id: "1@s.whatsapp.net" }, account: {} }, true],
    ] as const)
      assert.equal(isPaired(creds), expected, JSON.stringify(creds));
  });
  test("[P12] credentials and keys are restored as bytes; an unfinished login is not", async () => {
    const own = store();
    const first = new AuthStore(own);
    first.creds.me = { id: "15550001111:7@s.whatsapp.net", lid: "9@lid", name: "N" };
    first.creds.account = { details: new Uint8Array([1]) };
    first.saveCreds();
    await first.keys.set({
      "pre-key": { "1": { public: new Uint8Array([1, 2]), private: new Uint8Array([3]) } },
      session: { "a.0": new Uint8Array([4]) },
    });
    const second = new AuthStore(own);
    assert.equal(second.paired, true);
    assert.deepEqual(new Uint8Array(second.creds.noiseKey.private), new Uint8Array(first.creds.noiseKey.private));
    const found = await second.keys.get("pre-key", ["1", "2"]);
    assert.deepEqual(Object.keys(found), ["1"]);
    assert.deepEqual(new Uint8Array(found["1"]?.public ?? []), new Uint8Array([1, 2]));
    assert.deepEqual(pairedAs(own.kv), { id: "15550001111:7@s.whatsapp.net", lid: "9@lid", name: "N" });
    await second.keys.set({ session: { "a.0": null } });
    assert.deepEqual(await first.keys.get("session", ["a.0"]), {});
    const half = store();
    const begun = new AuthStore(half);
    begun.creds.me = { id: "15550001111@s.whatsapp.net" };
    begun.saveCreds();
    assert.equal(new AuthStore(half).creds.me, undefined);
  });
  test("[P12] older byte formats are read", async () => {
    const own = store();
    own.kv.put("key.session.a.0", JSON.stringify({ type: "Buffer", data: [1, 2, 3] }));
    own.kv.put("key.session.b.0", JSON.stringify({ type: "Buffer", data: "AQID" }));
    const found = await new AuthStore(own).keys.get("session", ["a.0", "b.0"]);
    for (const id of ["a.0", "b.0"]) assert.deepEqual(new Uint8Array(found[id] ?? []), new Uint8Array([1, 2, 3]), id);
  });
  test("[P12] a batch of keys is atomic", async () => {
    const own = store();
    const broken = { toJSON: () => assert.fail("disk full") };
    const auth = new AuthStore(own);
    await assert.rejects(async () => auth.keys.set({ session: { "a.0": new Uint8Array([1]), "b.0": broken as never } }));
    assert.deepEqual(await auth.keys.get("session", ["a.0"]), {});
  });
  test("[S5] a logout deletes everything, and late writes restore nothing", async () => {
    const own = store();
    const auth = new AuthStore(own);
    auth.saveCreds();
    await auth.keys.set({ session: { "a.0": new Uint8Array([1]) } });
    auth.end();
    clearAuth(own);
    await auth.keys.set({ session: { "a.0": new Uint8Array([1]) } });
    auth.saveCreds();
    assert.deepEqual(own.kv.keys(""), []);
  });
});

describe("recent messages", () => {
  test("[P19] a full inbox: decrypted messages wait and arrive in order later", () => {
    const own = store();
    const messages = new MessageStore(hostOf(own));
    own.full = true;
    for (const [key, at] of [
      ["c", 30],
      ["a", 10],
      ["b", 20],
    ] as const)
      messages.take(item(key, at));
    messages.takeOverflow();
    assert.equal(messages.overflow(), 3);
    own.full = false;
    messages.takeOverflow();
    assert.deepEqual(
      own.taken.map(({ key }) => key),
      ["a", "b", "c"],
    );
    messages.takeOverflow();
    assert.equal(messages.overflow(), 0);
  });
  test("[P19] the last twenty messages of a chat can be quoted, with at most 500 characters each", () => {
    const own = store();
    const messages = new MessageStore(hostOf(own));
    for (let at = 0; at < 30; at++) messages.take(item(`m${at}`));
    assert.equal(messages.quotable("1@lid", "m5"), undefined);
    assert.deepEqual(messages.quotable("1@lid", "m29"), { id: "m29", text: "text of m29", fromMe: false });
    messages.sent("OUT", "1@lid", new Uint8Array([1]), "x".repeat(900));
    assert.equal(messages.quotable("1@lid", "OUT")?.text.length, 500);
    assert.equal(messages.quotable("2@lid", "m29"), undefined);
  });
  test("[P19] about two hundred sent messages are kept", () => {
    const own = store();
    const messages = new MessageStore(hostOf(own));
    for (let at = 0; at < 401; at++) {
      own.time += 1;
      messages.sent(`id${at}`, "1@lid", new Uint8Array([at & 255]), "x");
    }
    const kept = own.kv.keys("sent.").length;
    assert(kept >= 200 && kept < 260, String(kept));
    assert.deepEqual(new Uint8Array(messages.sentBytes("id400") ?? []), new Uint8Array([400 & 255]));
    assert.equal(messages.sentBytes("id0"), undefined);
    assert.equal(messages.wasSent("id400"), true);
  });
  test("[W23] a gap is shown for a week", () => {
    const own = store();
    const gap = new OfflineGap(hostOf(own));
    gap.alive();
    own.time += 5_000;
    gap.mark("why");
    assert.deepEqual(gap.shown(), { from: 1_000_000, until: 1_005_000, why: "why" });
    own.time += 8 * 86_400_000;
    assert.equal(gap.shown(), undefined);
  });
});

describe("files", () => {
  const reference = { type: "image", directPath: "/v/x?y=1", mediaKey: "00".repeat(32) };
  const REAL = "wss://web.whatsapp.com/ws/chat";
  const LOCAL = "ws://127.0.0.1:1/ws/chat";
  for (const [url, socket, host] of [
    [undefined, REAL, "mmg.whatsapp.net"],
    ["https://media-ams2-1.cdn.whatsapp.net/v/x", REAL, "media-ams2-1.cdn.whatsapp.net"],
    ["https://evil.example/v/x", REAL, "mmg.whatsapp.net"],
    ["https://whatsapp.net.evil.example/", REAL, "mmg.whatsapp.net"],
    ["https://evilwhatsapp.net/", REAL, "mmg.whatsapp.net"],
    ["https://mmg.whatsapp.net@evil.example/", REAL, "mmg.whatsapp.net"],
    ["https://a:b@mmg.whatsapp.net/", REAL, "mmg.whatsapp.net"],
    ["https://mmg.whatsapp.net:8443/", REAL, "mmg.whatsapp.net"],
    ["http://mmg.whatsapp.net/", REAL, "mmg.whatsapp.net"],
    ["https://169.254.169.254/latest", REAL, "mmg.whatsapp.net"],
    ["https://127.0.0.1:99/x", REAL, "mmg.whatsapp.net"],
    ["https://127.0.0.1:99/x", LOCAL, "127.0.0.1:99"],
    ["https://10.0.0.1/x", LOCAL, "mmg.whatsapp.net"],
  ] as const) {
    test(`[S18] ${url ?? "nothing"} at ${socket}: ${host}`, () => {
      assert.equal(addressOf({ ...reference, ...(url === undefined ? {} : { url }) }, socket), `https://${host}/v/x?y=1`);
    });
  }
  test("[S18] an invalid reference", () => {
    for (const broken of [undefined, {}, { ...reference, type: "md-app-state" }, { ...reference, mediaKey: 5 }])
      assert.throws(() => readReference(broken), /is not valid/);
    assert.deepEqual(readReference(JSON.parse(JSON.stringify(reference))), reference);
  });
  test("[S18] only bytes that the message's keys sealed are decrypted", () => {
    const [iv, cipherKey, macKey] = [randomBytes(16), randomBytes(32), randomBytes(32)];
    const plain = Buffer.from("a file");
    const cipher = createCipheriv("aes-256-cbc", cipherKey, iv);
    const secret = Buffer.concat([cipher.update(plain), cipher.final()]);
    const sealed = Buffer.concat([secret, createHmac("sha256", macKey).update(iv).update(secret).digest().subarray(0, 10)]);
    const keys = { iv, cipherKey, macKey };
    const sha256 = createHash("sha256").update(plain).digest("hex");
    assert.deepEqual(Buffer.from(open(sealed, keys, sha256)), plain);
    assert.throws(() => open(sealed, keys, "00".repeat(32)), /another file/);
    assert.throws(() => open(sealed, { ...keys, macKey: randomBytes(32) }, sha256), /damaged/);
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      assert.throws(() => open(changed, keys, sha256), /damaged/);
    }
    for (const short of [Buffer.alloc(0), sealed.subarray(0, 9)]) assert.throws(() => open(short, keys, sha256), /damaged/);
  });
});
