/** Notifications: rows first, told once in a place that works, also when the gateway is killed. Channels and machines are fakes on the real wire. */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { Notification, OutboundMessage } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { NotifyStore } from "../../../src/features/notify/store.ts";
import { channelEntrypoint, client, eventually, gateway, node, type Peer } from "../../support/gateway.ts";
import { alarm, annAndBobWrite, HOUR, jobStage, pass, shownIn, useWhatsapp } from "../schedule/support.ts";

const MINUTE = 60_000;
const stage = jobStage();
type Listed = ResultOf<"notifications.list">;

/** A delivery over `channel` fails: the owner should know. */
let serial = 0;
const fails = (channel = "whatsapp", why = "no such person") =>
  channelEntrypoint(channel).delivered({
    account: { channel, accountId: "default" },
    report: { deliveryId: `nowhere/r${++serial}`, state: "failed", error: why },
  });
const listed = (params: object = {}): Promise<Listed> => stage.peer.ok<Listed>("notifications.list", params);
const set = (path: string, value: unknown) => stage.peer.ok("config.set", { path: `notifications.${path}`, value });
const told = async (): Promise<readonly string[]> =>
  (await shownIn(stage)).filter((text) => /could not be delivered|notifications since/.test(text));
/** The alarm fires until the newest notification has this state. */
async function becomes(state: Notification["state"]): Promise<Notification> {
  let newest: Notification | undefined;
  await eventually(async () => {
    await alarm();
    [newest] = (await listed()).notifications;
    expect(newest?.state).toBe(state);
  });
  if (newest === undefined) throw new Error("there is none");
  return newest;
}
async function restart(): Promise<void> {
  await abortAllDurableObjects();
  stage.peer = await client();
}
const ANN = "whatsapp/default/dm/ann";
const DESKTOP = { ledger: { calls: [] }, nodeRuntime: { hostCapabilities: [], toolCapabilities: {}, desktop: { program: "notify-send" } } };
const shows = (machine: Peer): readonly { showId: string; title: string; text: string }[] =>
  machine.events("notify.show").map(({ payload }) => payload as { showId: string; title: string; text: string });
const asked = (machine: Peer, count: number) => eventually(() => expect(shows(machine)).toHaveLength(count));

describe("[NT1][NT2][NT3] a cause", () => {
  test("is told at once, and what follows within the hour together: the latest, and how many", async () => {
    useWhatsapp();
    await fails();
    await eventually(async () => expect(await told()).toHaveLength(1));
    for (const why of ["one", "two", "three"]) {
      pass(stage, MINUTE);
      await fails("whatsapp", why);
    }
    await alarm();
    expect(await told()).toHaveLength(1);
    const [newest, , head] = (await listed()).notifications;
    expect([newest?.state, newest?.with, head?.state]).toEqual(["merged", head?.id, "waiting"]);
    await restart();
    pass(stage, HOUR);
    await eventually(async () => {
      await alarm();
      expect(await told()).toHaveLength(2);
    });
    const [, digest = ""] = await told();
    expect(digest).toMatch(
      /could not be delivered: three\..*\n\(The latest of 3 such notifications since 00:01 \(UTC\); `gsv notifications`/,
    );
    await alarm();
    expect(await told()).toHaveLength(2);
    expect((await listed()).waiting).toBe(0);
  });
  test("[NT5] is told in the conversation at the command line that was active last, which the owner sees", async () => {
    useWhatsapp();
    for (const sessionKey of ["agent:main:cli:dm:old", "agent:main:cli:dm:main"]) {
      pass(stage, MINUTE);
      await stage.peer.ok("chat.send", { sessionKey, message: "hello", messageId: crypto.randomUUID(), runId: crypto.randomUUID() });
    }
    await fails();
    expect(await becomes("told")).toMatchObject({ toldIn: "agent:main:cli:dm:main" });
    const shown = (await shownIn(stage, "agent:main:cli:dm:main")).filter((text) => /could not be delivered/.test(text));
    expect(shown).toHaveLength(1);
    expect(await told()).toEqual([]);
  });
  test("another cause does not wait for it, and the same report is no second notification", async () => {
    useWhatsapp();
    vi.spyOn(parts, "channelNames").mockImplementation(() => ["whatsapp", "discord"]);
    await fails();
    serial--;
    await fails();
    await fails("discord");
    await eventually(async () => expect(await told()).toHaveLength(2));
    expect((await listed()).notifications.map(({ state, toldIn }) => [state, toldIn])).toEqual([
      ["told", "main"],
      ["told", "main"],
    ]);
  });
  test("[NT9] what waits with it has a bound, and all of it is counted", async () => {
    useWhatsapp();
    await fails();
    await becomes("told");
    for (let n = 0; n < 70; n++) await fails("whatsapp", `why ${n}`);
    pass(stage, HOUR);
    await eventually(async () => {
      await alarm();
      expect(await told()).toHaveLength(2);
    });
    expect((await told())[1]).toMatch(/why 69\..*\n\(The latest of 70 such/);
    const rows = await runInDurableObject(gateway(), (_gateway, { storage }) =>
      storage.sql.exec<{ n: number }>("SELECT count(*) AS n FROM notifications").one(),
    );
    expect(rows.n).toBe(52);
  });
});

describe("[NT9] what is kept has a bound", () => {
  const rows = (work: (store: NotifyStore) => void): Promise<Readonly<Record<string, number>>> =>
    runInDurableObject(gateway(), (_gateway, { storage }) => {
      work(new NotifyStore(storage, (text) => text));
      const counts = storage.sql
        .exec<{ state: string; n: number }>("SELECT state, count(*) AS n FROM notifications GROUP BY state")
        .toArray();
      return Object.fromEntries(counts.map(({ state, n }) => [state, n]));
    });
  const add = (store: NotifyStore, key: string, cause: string) =>
    store.add({ kind: "job", key, cause, text: "It failed.", agentId: "main" }, stage.now);

  test("of 100 causes that wait, a further one takes the place of the oldest, with all that waits with it", async () => {
    const counts = await rows((store) => {
      expect(add(store, "with", "c0")).toBeDefined();
      expect(add(store, "oldest", "c0")).toBeDefined();
      for (let n = 1; n <= 100; n++) add(store, `k${n}`, `c${n}`);
      expect(store.list(200, Number.MAX_SAFE_INTEGER, undefined).flatMap(({ key, state }) => (state === "dropped" ? [key] : []))).toEqual([
        "oldest",
        "with",
      ]);
    });
    expect(counts).toEqual({ waiting: 100, dropped: 2 });
  });
  test("500 of those that have ended", async () => {
    const counts = await rows((store) => {
      for (let n = 0; n <= 501; n++) {
        const id = add(store, `k${n}`, `c${n}`);
        if (n < 501) store.end(id ?? 0, "told", stage.now, "main");
      }
      expect(store.find(1)).toBeUndefined();
    });
    expect(counts).toEqual({ told: 500, waiting: 1 });
  });
});

describe("[NT4] quiet hours", () => {
  test("hold back what can wait, and then it is told together; a question and a test are told at once", async () => {
    useWhatsapp();
    vi.spyOn(parts, "channelNames").mockImplementation(() => ["whatsapp", "discord"]);
    // It is midnight.
    await set("quietHours", { start: "22:00", end: "07:00" });
    await fails("whatsapp", "a");
    await fails("discord", "b");
    await alarm();
    expect(await told()).toEqual([]);
    expect(await listed()).toMatchObject({ waiting: 2, quietUntil: stage.now + 7 * HOUR, quietHours: { start: "22:00", end: "07:00" } });
    expect((await listed()).notifications.map(({ dueAt }) => dueAt)).toEqual([stage.now + 7 * HOUR, stage.now + 7 * HOUR]);
    expect(await stage.peer.ok("notifications.test", { kind: "approval" })).toMatchObject({ notification: { state: "told" } });
    await restart();
    pass(stage, 7 * HOUR);
    await eventually(async () => {
      await alarm();
      expect(await told()).toHaveLength(1);
    });
    expect((await told())[0]).toMatch(/^2 notifications since 00:00 \(UTC\):\n- A.* a\..*\n- A.* b\./);
    expect((await listed()).waiting).toBe(0);
  });
  test("that are taken away end at once", async () => {
    useWhatsapp();
    await set("quietHours", { start: "22:00", end: "07:00" });
    await fails();
    await alarm();
    expect(await told()).toEqual([]);
    await stage.peer.ok("config.unset", { path: "notifications.quietHours" });
    await becomes("told");
    expect(await told()).toHaveLength(1);
  });
});

describe("[NT5][NT6] a place", () => {
  test("of a channel gets it as a message to the owner, which is in no conversation; the channel that it is about does not", async () => {
    const sent = useWhatsapp();
    vi.spyOn(parts, "channelNames").mockImplementation(() => ["whatsapp", "discord"]);
    await annAndBobWrite(stage, sent);
    await set("undelivered", "last");
    await fails("discord");
    expect(await becomes("told")).toMatchObject({ toldIn: ANN });
    expect(sent).toMatchObject([
      { kind: "notice", peer: { kind: "dm", id: "ann" }, text: expect.stringContaining("could not be delivered") },
    ]);
    expect(await told()).toEqual([]);
    await fails("whatsapp");
    expect(await becomes("told")).toMatchObject({
      toldIn: "main",
      failures: [`${ANN}: It is about this channel.`, expect.stringMatching(/^desktop: /)],
    });
    expect(sent).toHaveLength(1);
  });
  test("[NT10] of a guest, of a group or of a person who never wrote is never told", async () => {
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    for (const place of ["whatsapp/default/dm/bob", "whatsapp/default/group/g", "whatsapp/default/dm/carl", "telegram/default/dm/ann"]) {
      await set("job", place);
      const { notification } = await stage.peer.ok<ResultOf<"notifications.test">>("notifications.test", { kind: "job" });
      expect(notification).toMatchObject({ state: "told", toldIn: "main" });
      expect(notification.failures?.[0]).toContain(place);
      expect((await listed()).places.find(({ kind }) => kind === "job")).toMatchObject({ place, problem: expect.any(String) });
    }
    expect(sent).toEqual([]);
  });
  test("`none` tells nothing, and a wrong place is refused with those that exist", async () => {
    useWhatsapp();
    await set("undelivered", "none");
    await fails();
    await becomes("off");
    expect(await told()).toEqual([]);
    const refused = await stage.peer.call("config.set", { path: "notifications.budget", value: "whatsapp" });
    expect(refused).toMatchObject({ ok: false, error: { message: expect.stringMatching(/is not a place\. Places are `main`, `last`/) } });
    expect((await stage.peer.call("config.set", { path: "notifications.bugdet", value: "main" })).ok).toBe(false);
  });
  test("[NT7] that does not take the message is replaced by the next, once, also when the report comes late or twice", async () => {
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    await set("job", "last");
    await stage.peer.ok("notifications.test", { kind: "job" });
    const [message] = sent;
    expect(message?.deliveryId).toMatch(/^msg:notify\/\d+\/0$/);
    for (let n = 0; n < 2; n++)
      await channelEntrypoint("whatsapp").delivered({
        account: { channel: "whatsapp", accountId: "default" },
        report: { deliveryId: message?.deliveryId ?? "", state: "failed", error: "blocked" },
      });
    const [row, ...others] = await eventuallyTold();
    expect(others).toEqual([]);
    expect(row).toMatchObject({ toldIn: "main", failures: [`${ANN}: blocked`, expect.stringMatching(/^desktop: /)] });
    expect((await shownIn(stage)).filter((text) => text.startsWith("This is a test:"))).toHaveLength(1);
    expect(sent).toHaveLength(1);
  });
});
const eventuallyTold = async (): Promise<readonly Notification[]> => {
  let rows: readonly Notification[] = [];
  await eventually(async () => {
    await alarm();
    rows = (await listed()).notifications;
    expect(rows.every(({ state, toldIn }) => state === "told" && toldIn === "main")).toBe(true);
  });
  return rows;
};

describe("[NT7] a gateway that is killed", () => {
  test("between the row and the telling tells it once", async () => {
    useWhatsapp();
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      storage.sql.exec(
        "INSERT INTO notifications(key, kind, cause, agent, text, created_at, state, due_at, body) VALUES('k', 'undelivered', 'c', 'main', 'It could not be delivered', ?, 'waiting', ?, '{}')",
        stage.now,
        stage.now,
      );
    });
    // No instance knows of the row; a change of the configuration sets the alarm.
    await set("job", "main");
    await becomes("told");
    expect(await told()).toHaveLength(1);
  });
  test("between the telling and its mark says it again under the same name: the note is there once, and the channel gets one id", async () => {
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    await fails();
    await becomes("told");
    await set("job", "last");
    await stage.peer.ok("notifications.test", { kind: "job" });
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      storage.sql.exec("UPDATE notifications SET state = 'waiting', told_at = NULL, told_in = NULL");
    });
    await set("job", "last");
    await eventually(async () => {
      await alarm();
      expect((await listed()).waiting).toBe(0);
    });
    expect(await told()).toHaveLength(1);
    expect(sent).toHaveLength(2);
    expect(new Set(sent.map(({ deliveryId }) => deliveryId)).size).toBe(1);
  });
  test("says it again in the same conversation, although the owner has written in another one since", async () => {
    useWhatsapp();
    const writes = async (sessionKey: string) => {
      pass(stage, MINUTE);
      await stage.peer.ok("chat.send", { sessionKey, message: "hello", messageId: crypto.randomUUID(), runId: crypto.randomUUID() });
    };
    const toldThere = async (sessionKey: string) =>
      (await shownIn(stage, sessionKey)).filter((text) => /could not be delivered/.test(text)).length;
    await writes("agent:main:cli:dm:one");
    await fails();
    await becomes("told");
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      storage.sql.exec(
        "UPDATE notifications SET state = 'waiting', told_at = NULL, told_in = NULL, body = json_set(body, '$.asked', 'agent:main:cli:dm:one')",
      );
    });
    await writes("agent:main:cli:dm:two");
    await restart();
    expect(await becomes("told")).toMatchObject({ toldIn: "agent:main:cli:dm:one" });
    expect([await toldThere("agent:main:cli:dm:one"), await toldThere("agent:main:cli:dm:two")]).toEqual([1, 0]);
  });
  test("a channel that does not answer is asked again with the same id, three times, and then the next way is used", async () => {
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    const real = vi.mocked(parts.channel).getMockImplementation();
    const tried: OutboundMessage[] = [];
    vi.spyOn(parts, "channel").mockImplementation((env, name) => {
      const service = real?.(env, name);
      if (service === undefined) return undefined;
      const send: typeof service.send = async ({ message }) => {
        tried.push(message);
        throw new Error("the line broke");
      };
      return { ...service, send };
    });
    await set("job", "last");
    await stage.peer.ok("notifications.test", { kind: "job" });
    await eventually(async () => {
      pass(stage, 10 * MINUTE);
      await alarm();
      expect((await listed()).notifications[0]).toMatchObject({ state: "told", toldIn: "main" });
    });
    expect(tried).toHaveLength(4);
    expect(new Set(tried.map(({ deliveryId }) => deliveryId)).size).toBe(1);
  });
});

test("[NT6] a channel that does not answer holds up neither another notification nor the alarm", async () => {
  const sent = useWhatsapp();
  await annAndBobWrite(stage, sent);
  const real = vi.mocked(parts.channel).getMockImplementation();
  let asks = 0;
  vi.spyOn(parts, "channel").mockImplementation((env, name) => {
    const service = real?.(env, name);
    const send = (): Promise<never> => {
      asks++;
      return new Promise(() => undefined);
    };
    return service && { ...service, send };
  });
  await set("job", "last");
  stage.peer.ask("notifications.test", { kind: "job" });
  await eventually(() => expect(asks).toBe(1));
  await fails();
  await eventually(async () => {
    await alarm();
    expect(await told()).toHaveLength(1);
  });
  pass(stage, 2 * MINUTE);
  await alarm();
  expect(asks).toBe(1);
  expect((await listed()).waiting).toBe(1);
});

describe("[NT8] a desktop", () => {
  test("of the machine that connected last shows the first line, and a machine that can't is not asked", async () => {
    useWhatsapp();
    const plain = await node("plain");
    const able = await node("able", undefined, DESKTOP);
    await set("undelivered", "desktop");
    await fails("whatsapp", `${"x".repeat(400)}`);
    await asked(able, 1);
    const [show] = shows(able);
    expect(show?.title).toBe("A message of GSV was not delivered");
    expect(show?.text.length).toBe(240);
    expect((await listed()).notifications[0]?.state).toBe("waiting");
    await able.ok("notify.shown", { showId: show?.showId });
    expect(await becomes("told")).toMatchObject({ toldIn: "desktop/able" });
    expect(shows(plain)).toEqual([]);
    expect(await told()).toEqual([]);
    expect(await able.ok("notify.shown", { showId: show?.showId })).toEqual({ ok: true, dropped: true });
    expect(await stage.peer.ok("nodes.list")).toMatchObject({
      nodes: [{ nodeId: "able", desktop: { program: "notify-send" } }, { nodeId: "plain" }],
    });
  });
  test("that shows nothing, or is not there, is replaced by the main conversation, with the reason", async () => {
    useWhatsapp();
    await set("undelivered", "desktop/able");
    await fails();
    expect(await becomes("told")).toMatchObject({ toldIn: "main", failures: ["desktop/able: The machine able is not connected."] });
    const able = await node("able", undefined, DESKTOP);
    pass(stage, 2 * HOUR);
    await fails();
    await asked(able, 1);
    await able.ok("notify.shown", { showId: shows(able)[0]?.showId, problem: "there is no display" });
    expect(await becomes("told")).toMatchObject({ toldIn: "main", failures: ["desktop/able: there is no display"] });
    pass(stage, 2 * HOUR);
    await fails();
    await asked(able, 2);
    able.socket.close();
    expect(await becomes("told")).toMatchObject({ toldIn: "main", failures: ["desktop/able: The machine disconnected."] });
  });
  test("[NT7] that was asked before a kill is not asked again: the owner is told in the main conversation", async () => {
    useWhatsapp();
    const able = await node("able", undefined, DESKTOP);
    await set("undelivered", "desktop");
    await fails();
    await asked(able, 1);
    await restart();
    const { toldIn, failures = [] } = await becomes("told");
    expect([toldIn, failures[0]]).toEqual(["main", "desktop/able: It is not known whether it was shown."]);
    expect(shows(able)).toHaveLength(1);
    expect(await told()).toHaveLength(1);
  });
  test("[NT8] gets no stored secret, and what it answers is kept without one", async () => {
    useWhatsapp();
    await stage.peer.ok("config.set", { path: "apiKeys.openai", value: "sk-canary-1234567890abcdef" });
    const able = await node("able", undefined, DESKTOP);
    await set("undelivered", "desktop");
    await fails("whatsapp", "the key sk-canary-1234567890abcdef is wrong");
    await asked(able, 1);
    expect(JSON.stringify(shows(able))).not.toContain("canary");
    await able.ok("notify.shown", { showId: shows(able)[0]?.showId, problem: "sk-canary-1234567890abcdef is no display" });
    expect((await becomes("told")).failures).toHaveLength(1);
    expect(JSON.stringify(await listed())).not.toContain("canary");
  });
});

describe("[BK18] a scheduled backup that fails", () => {
  const fails = (since: number, problem?: string) =>
    stage.peer.ok("backup.report", { since, ...(problem === undefined ? {} : { problem }) });
  test("is one notification, however often it is reported, and over when one is made", async () => {
    await fails(5, "The scheduled backup failed: the disk is full. Free some space.");
    await fails(5, "The scheduled backup failed: the disk is full. Free some space.");
    await eventually(async () => expect((await shownIn(stage)).filter((text) => /the disk is full/.test(text))).toHaveLength(1));
    const [told, ...others] = (await listed()).notifications;
    expect([told?.kind, told?.cause, others.length]).toEqual(["job", "backup", 0]);
    await fails(5);
    expect((await listed()).notifications[0]?.overAt).toBeTypeOf("number");
    // Failures of another time are news again.
    await fails(9, "The scheduled backup failed: the folder is missing.");
    expect((await listed()).notifications).toHaveLength(2);
  });
});
