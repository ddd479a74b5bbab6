import assert from "node:assert/strict";
import { test } from "node:test";
import { HTTPError } from "@discordjs/rest";
import { MemoryHost } from "../test/memory-host.ts";
import { BACKFILL, Backfill, type BackfillPorts } from "./backfill.ts";
import { Directory } from "./directory.ts";
import { asId, asObject, idAtTime } from "./map-reading.ts";

const HOUR = 3_600_000;
type Page = (channelId: string, after: string) => readonly unknown[] | { readonly status: number };

/** Messages of one channel, one minute apart, from `from` hours ago. */
const history = (host: MemoryHost, hoursAgo: number, count: number): { readonly id: string }[] =>
  Array.from({ length: count }, (_, index) => ({ id: idAtTime(host.time - hoursAgo * HOUR + index * 60_000) }));

function world(page: Page) {
  const host = new MemoryHost();
  const directory = new Directory(host.kv);
  const asked: string[] = [];
  const taken: (readonly [id: unknown, late: boolean])[] = [];
  let released = 0;
  const getMessages = async (channelId: string, { after }: { after: string }): Promise<readonly unknown[]> => {
    asked.push(channelId);
    const answer = page(channelId, after);
    if ("status" in answer) throw new HTTPError(answer.status, "refused", "GET", "/channels", { body: undefined, files: undefined });
    return answer.filter((entry) => {
      const id = asId(asObject(entry)?.["id"]);
      return id === undefined || BigInt(id) > BigInt(after);
    });
  };
  const ports: BackfillPorts = {
    host,
    directory,
    history: getMessages,
    take: (message, _guild, late) => {
      if (taken.some(([id]) => id === message["id"])) return false;
      taken.push([message["id"], late]);
      return true;
    },
    serversToCome: () => 0,
    release: () => {
      released += 1;
    },
  };
  const backfill = new Backfill(ports);
  /** The bot read the channel that many hours ago. */
  const read = (channelId: string, hoursAgo: number): void => {
    const item = {
      key: "x",
      inbound: { peer: { kind: "channel" as const, id: channelId }, message: { id: "x", text: "" }, receivedAt: 0 },
      files: [],
    };
    directory.remember({ item, channelId, messageId: idAtTime(host.time - hoursAgo * HOUR) }, host.time - hoursAgo * HOUR);
  };
  const lost = (hoursAgo: number): void => {
    host.kv.put("alive", host.time - hoursAgo * HOUR);
    backfill.plan();
  };
  return { host, directory, backfill, asked, taken, read, lost, released: () => released };
}
const channel = (index: number): string => String(300_000_000_000_000_000n + BigInt(index));

test("[P2] missed messages arrive oldest first, marked as late, once", async () => {
  const w = world(() => history(w.host, 1, 5).toReversed());
  w.read(channel(1), 2);
  w.lost(2);
  assert.equal(w.backfill.holds, true);
  await w.backfill.work();
  const ids = w.taken.map(([id]) => BigInt(String(id)));
  assert.deepEqual(
    ids,
    ids.toSorted((left, right) => (left < right ? -1 : 1)),
  );
  assert.equal(ids.length, 5);
  assert.ok(w.taken.every(([, late]) => late));
  assert.deepEqual([w.backfill.holds, w.backfill.missed, w.host.kv.get("gap")], [false, undefined, undefined]);
  assert.ok(w.released() > 0);
  await w.backfill.work();
  assert.equal(w.taken.length, 5);
});
test("[P2] the first start has no gap", async () => {
  const w = world(() => history(w.host, 1, 5));
  w.read(channel(1), 2);
  w.backfill.plan();
  await w.backfill.work();
  assert.deepEqual([w.asked, w.backfill.holds], [[], false]);
});
test("[P2] at most fifty channels, the most active first; the rest is reported", async () => {
  const w = world(() => []);
  for (let index = 0; index < 60; index++) w.read(channel(index), 1 + index);
  w.lost(1);
  await w.backfill.work();
  assert.deepEqual(
    w.asked,
    Array.from({ length: BACKFILL.channels }, (_, index) => channel(index)),
  );
  assert.equal(w.backfill.missed?.channels, 10);
});
test("[P2] a full page is reported as a possible gap for a day", async () => {
  const w = world(() => history(w.host, 2, 100));
  w.read(channel(1), 3);
  w.lost(3);
  await w.backfill.work();
  assert.equal(w.taken.length, 100);
  assert.equal(w.backfill.missed?.channels, 1);
  w.host.time += 25 * HOUR;
  assert.equal(w.backfill.missed, undefined);
});
test("[P2] messages older than a day are not read, and that is reported", async () => {
  const w = world(() => [...history(w.host, 30, 3), ...history(w.host, 1, 2)]);
  w.read(channel(1), 40);
  w.lost(40);
  await w.backfill.work();
  assert.equal(w.taken.length, 2);
  assert.equal(w.backfill.missed?.channels, 1);
});
test("[P2] an unreadable channel has no gap; a failing one is reported", async () => {
  const w = world((id) => (id === channel(1) ? { status: 403 } : id === channel(2) ? { status: 500 } : history(w.host, 1, 1)));
  for (const index of [1, 2, 3]) w.read(channel(index), 2);
  w.lost(2);
  await w.backfill.work();
  assert.equal(w.taken.length, 1);
  assert.equal(w.asked.filter((id) => id === channel(2)).length, BACKFILL.tries);
  assert.equal(w.asked.filter((id) => id === channel(1)).length, 1);
  assert.equal(w.backfill.missed?.channels, 1);
});
test("[P2] channels that were never read are read when their server reports something new", async () => {
  const w = world(() => history(w.host, 1, 2));
  const guild = "200000000000000001";
  const channels = [
    { id: channel(1), type: 0, name: "new", last_message_id: idAtTime(w.host.time - HOUR) },
    { id: channel(2), type: 0, name: "old", last_message_id: idAtTime(w.host.time - 90 * HOUR) },
    { id: channel(3), type: 2, name: "voice", last_message_id: idAtTime(w.host.time - HOUR) },
    { id: channel(4), type: 0, name: "known", last_message_id: idAtTime(w.host.time - 3 * HOUR) },
  ];
  w.read(channel(4), 3);
  w.directory.hear("GUILD_CREATE", { id: guild, name: "Home", channels, roles: [], members: [] }, "1");
  w.lost(2);
  await w.backfill.work();
  assert.deepEqual(w.asked, [channel(1)]);
  assert.equal(w.taken.length, 2);
});
test("[P2] invalid entries in the history are skipped", async () => {
  const w = world(() => [null, 5, { id: "x" }, { id: {} }, ...history(w.host, 1, 1)]);
  w.read(channel(1), 2);
  w.lost(2);
  await w.backfill.work();
  assert.equal(w.taken.length, 1);
});
test("[P2] a second lost session meanwhile is filled, too", async () => {
  let first = true;
  const w = world(() => {
    if (first) {
      first = false;
      w.host.time += 1_000;
      w.backfill.plan();
    }
    return [];
  });
  w.read(channel(1), 2);
  w.lost(2);
  await w.backfill.work();
  assert.equal(w.asked.length, 2);
  assert.equal(w.host.kv.get("gap"), undefined);
});
