/**
 * The contract tests of channels: one suite, run on each channel's built Worker against a fake of its platform. `Side` is the platform's
 * side: it drives the fake, and the tests know nothing else of the platform. Tests wait for conditions, never for time.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { ChannelInbound, ChannelInboundOutcome, ChannelSendResult, DeliveryReport, Peer } from "../../../protocol/gen/types.ts";
import type { GatewaySide, Stage } from "./stage.ts";

/** A person with a direct conversation, as the platform sees it. */
export interface Person {
  readonly peer: Peer;
  /** Returns the message's id. */
  say(text: string, more?: { readonly replyTo?: string }): Promise<string>;
  /** The platform redelivers the same message. */
  again(id: string, text: string): Promise<void>;
  /** Resolves when the channel has acknowledged the message. */
  told(id: string): Promise<void>;
  /** The agent's messages here, oldest first. */
  shown(): readonly Shown[];
  /** The agent's next message here arrives, and the platform's answer to the channel is lost. */
  loseAnswer(): void;
  /** From now on the platform refuses the agent's messages here for good. */
  refuse?(): void;
  sayFile?(name: string, bytes: Uint8Array): Promise<string>;
  /** Name and bytes of the file that the agent sent last. */
  file?(): Promise<Uint8Array | undefined>;
  /** Typing states that the platform received here, in order. */
  typing?(): readonly boolean[];
  reactions?(): readonly { readonly messageId: string; readonly emoji: string }[];
}
export interface Shown {
  readonly id: string;
  readonly text: string;
  /** Id of the message that it replies to. */
  readonly replyTo?: string;
}
export interface Side {
  readonly stage: Stage;
  /** Starts the account (may be repeated) and waits until it is connected. */
  start(): Promise<void>;
  /** A new person on the platform. */
  person(): Promise<Person>;
  /** Strings that no log may contain: tokens, keys, people. Read at the end. */
  secrets(): readonly string[];
  close(): Promise<void>;
}
export interface Subject {
  readonly channel: string;
  readonly maxTextChars: number;
  /** `**bold** and [a link](https://example.org/x)` in the platform's marks. */
  readonly marked: string;
  /** The platform delivers messages of the stopped time after a start. */
  readonly bringsBacklog: boolean;
  /** Optional features of the platform and its fake; tests of absent ones are not registered. */
  readonly has: readonly Feature[];
  open(): Promise<Side>;
}
/** `refusals`: the fake can refuse an answer for good. The others are capabilities that the channel declares. */
export type Feature = "files" | "reactions" | "replies" | "typing" | "refusals";

/** Part of every message text here. No log may contain it. */
const MARK = "xylophone";
let serial = 0;
const fresh = (what: string): string => `${what}-${++serial}`;
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const opens = (text: string): number => text.split("```").length - 1;

export function channelContract(subject: Subject): void {
  const { channel, maxTextChars, marked, bringsBacklog } = subject;
  const has = (feature: Feature): boolean => subject.has.includes(feature);
  let side: Side;
  let stage: Stage;
  let gateway: GatewaySide;
  before(async () => {
    side = await subject.open();
    stage = side.stage;
    gateway = stage.gateway();
    await side.start();
  });
  after(() => side.close());

  const taken = (person: Person, id: string): Promise<ChannelInbound> =>
    stage.until(`${id} is taken`, () => gateway.taken.find(({ peer, message }) => peer.id === person.peer.id && message.id === id));
  const callsOf = (person: Person): readonly ChannelInbound[] => gateway.calls.filter(({ peer }) => peer.id === person.peer.id);
  const send = (person: Person, text: string, deliveryId = fresh("d"), more: object = {}): Promise<ChannelSendResult> =>
    stage.send({ deliveryId, peer: person.peer, text, ...more });
  const sent = async (person: Person, text: string, more: object = {}): Promise<DeliveryReport> => {
    const deliveryId = fresh("d");
    await send(person, text, deliveryId, more);
    const report = await stage.report(deliveryId);
    assert.equal(report.state, "sent", report.error);
    return report;
  };
  const textsOf = (person: Person): string[] => person.shown().map(({ text }) => text);
  const shows = (person: Person, text: string): Promise<Shown> =>
    stage.until(`${text} is shown`, () => person.shown().find((shown) => shown.text === text));

  describe(`inbound over ${channel}`, { concurrency: 6, timeout: 60_000 }, () => {
    it("[P2] a message is handed over once, with sender and conversation, however often it is redelivered", async () => {
      const ann = await side.person();
      const text = `hello ${MARK}`;
      const id = await ann.say(text);
      const inbound = await taken(ann, id);
      assert.deepEqual([inbound.message.text, inbound.peer.kind, inbound.peer.id], [text, "dm", ann.peer.id]);
      await ann.told(id);
      await ann.again(id, text);
      await taken(ann, await ann.say(`after it ${MARK}`));
      assert.equal(callsOf(ann).length, 2);
    });

    it("[P2][W3] the gateway's answer is lost: the same message is handed over again and answered once", async () => {
      const ann = await side.person();
      const answered = ({ message }: ChannelInbound): ChannelInboundOutcome => ({
        outcome: "answered",
        replies: [{ deliveryId: `n-${message.id}`, kind: "notice", peer: ann.peer, text: `noted ${MARK}` }],
      });
      gateway.rules.set(ann.peer.id, (inbound, nth) => (nth === 1 ? { lost: answered(inbound) } : answered(inbound)));
      const id = await ann.say(`effect ${MARK}`);
      assert.equal((await stage.report(`n-${id}`)).state, "sent");
      assert.deepEqual(textsOf(ann), [`noted ${MARK}`]);
      const [first, second, ...more] = callsOf(ann);
      assert.deepEqual(second, first);
      assert.deepEqual([more.length, gateway.textsOf(ann.peer.id).length], [0, 1]);
    });

    it("[P2][P3] a gateway that is away, asks for a retry or answers garbage: each message arrives once, in order per sender", async () => {
      const [ann, bob, eve] = [await side.person(), await side.person(), await side.person()];
      let away = true;
      let turn = 0;
      const trouble = (): "away" | "garbage" | { outcome: "later" } | { outcome: "accepted" } =>
        away ? ((["away", "garbage", { outcome: "later" }] as const)[turn++ % 3] ?? "away") : { outcome: "accepted" };
      gateway.rules.set(ann.peer.id, trouble);
      gateway.rules.set(bob.peer.id, trouble);
      const said = range(10).map((n) => `m${n} ${MARK}`);
      for (const text of said) for (const person of [ann, bob]) await person.say(text);
      // Conversations that the gateway serves do not wait for the others.
      await taken(eve, await eve.say(`meanwhile ${MARK}`));
      await stage.until("both were tried", () => callsOf(ann).length > 0 && callsOf(bob).length > 0);
      assert.deepEqual([...gateway.textsOf(ann.peer.id), ...gateway.textsOf(bob.peer.id)], []);
      away = false;
      for (const person of [ann, bob]) {
        await stage.until("all were taken", () => gateway.textsOf(person.peer.id).length === said.length);
        assert.deepEqual(gateway.textsOf(person.peer.id), said);
      }
    });

    it("[P3] a slow gateway gets one message of a conversation at a time; other conversations continue", async () => {
      const [ann, bob] = [await side.person(), await side.person()];
      let release: () => void = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      gateway.rules.set(ann.peer.id, async () => {
        await held;
        return { outcome: "accepted" };
      });
      for (const text of ["one", "two", "three"]) await ann.say(`${text} ${MARK}`);
      await stage.until("the first is being taken", () => callsOf(ann).length === 1);
      await taken(bob, await bob.say(`past it ${MARK}`));
      assert.equal(callsOf(ann).length, 1);
      release();
      await stage.until("all were taken", () => gateway.textsOf(ann.peer.id).length === 3);
      assert.deepEqual(
        gateway.textsOf(ann.peer.id),
        ["one", "two", "three"].map((text) => `${text} ${MARK}`),
      );
    });

    it("[P2] a throttled flood from one sender costs few calls and delays no other sender", async () => {
      const [flood, bob] = [await side.person(), await side.person()];
      let braked = true;
      gateway.rules.set(flood.peer.id, () => (braked ? { outcome: "later" } : { outcome: "accepted" }));
      const said = range(60).map((n) => `flood ${n} ${MARK}`);
      for (const text of said) await flood.say(text);
      for (const n of range(5)) await taken(bob, await bob.say(`calm ${n} ${MARK}`));
      // The first is retried with backoff; the others queue behind it.
      assert.ok(callsOf(flood).length <= 5, `${callsOf(flood).length} calls`);
      assert.equal(new Set(callsOf(flood).map(({ message }) => message.id)).size, 1);
      braked = false;
      await stage.until("all were taken", () => gateway.textsOf(flood.peer.id).length === said.length);
      assert.deepEqual(gateway.textsOf(flood.peer.id), said);
    });

    if (has("reactions"))
      it("[P10] the gateway's reaction is put on the message", async () => {
        const ann = await side.person();
        gateway.rules.set(ann.peer.id, () => ({ outcome: "accepted", reaction: "👀" }));
        const id = await ann.say(`look ${MARK}`);
        await stage.until("the sign", () => ann.reactions?.().some((reaction) => reaction.messageId === id && reaction.emoji === "👀"));
      });

    if (has("files"))
      it("[P7] an inbound file is stored in the bucket", async () => {
        const ann = await side.person();
        assert(ann.sayFile);
        const bytes = new TextEncoder().encode(`from a phone ${MARK}`);
        const { message } = await taken(ann, await ann.sayFile("note.txt", bytes));
        assert.equal(message.media?.length, 1);
        assert.deepEqual(new Uint8Array(await stage.get(message.media?.[0]?.r2Key ?? "")), bytes);
      });
  });

  describe(`outbound over ${channel}`, { concurrency: 6, timeout: 60_000 }, () => {
    it("[P9] a repeated delivery is one message; the order of others stays", async () => {
      const ann = await side.person();
      const said = range(8).map((n) => `out ${n} ${MARK}`);
      const ids = said.map(() => fresh("d"));
      for (const [at, text] of said.entries()) assert.deepEqual(await send(ann, text, ids[at]), { status: "queued" });
      for (const [at, text] of said.entries()) assert.deepEqual(await send(ann, text, ids[at]), { status: "queued", duplicate: true });
      for (const id of ids) assert.equal((await stage.report(id)).state, "sent");
      assert.deepEqual(textsOf(ann), said);
      assert.deepEqual(await send(ann, said[0] ?? "", ids[0]), { status: "queued", duplicate: true });
    });

    it("[P9] the platform's answer is lost: no second message, and the order stays", async () => {
      const ann = await side.person();
      ann.loseAnswer();
      const [first, second] = [fresh("d"), fresh("d")];
      await send(ann, `exactly once ${MARK}`, first);
      await send(ann, `and then ${MARK}`, second);
      assert.equal((await stage.report(first)).state, "sent");
      assert.equal((await stage.report(second)).state, "sent");
      assert.deepEqual(textsOf(ann), [`exactly once ${MARK}`, `and then ${MARK}`]);
    });

    if (has("refusals"))
      it("[P9] a permanent refusal is reported at once", async () => {
        const [ann, bob] = [await side.person(), await side.person()];
        assert(ann.refuse);
        ann.refuse();
        const id = fresh("d");
        await send(ann, `unwanted ${MARK}`, id);
        const report = await stage.report(id);
        assert.equal(report.state, "failed");
        assert.ok((report.error ?? "").length > 0);
        await sent(bob, `wanted ${MARK}`);
      });

    it("[P7] a long text is sent in parts that fit, with fences closed at each cut", async () => {
      const ann = await side.person();
      const line = (n: number): string => `line ${n} of the program ${MARK}`;
      const lines = range(Math.ceil((maxTextChars * 2.5) / line(100).length)).map(line);
      const report = await sent(ann, `Here it is:\n\n\`\`\`\n${lines.join("\n")}\n\`\`\`\n\nThat is all.`);
      const shown = await stage.until("all parts", () => ann.shown().length === report.messageIds?.length && ann.shown());
      assert.ok(shown.length >= 3, `${shown.length} parts`);
      for (const { text } of shown) {
        assert.ok(text.length <= maxTextChars, `${text.length} characters`);
        assert.equal(opens(text) % 2, 0, text.slice(0, 60));
      }
      const whole = shown.map(({ text }) => text).join("\n");
      let at = -1;
      for (const each of lines) {
        const next = whole.indexOf(each, at + 1);
        assert.ok(next > at, each);
        at = next;
      }
      assert.match(shown.at(-1)?.text ?? "", /That is all\.$/);
    });

    it("[P7] markdown is shown in the platform's marks", async () => {
      const ann = await side.person();
      await sent(ann, "**bold** and [a link](https://example.org/x)");
      assert.deepEqual(textsOf(ann), [marked]);
    });

    it("[P7] the declared capabilities are those that this suite tests", async () => {
      const { media, reactions, replies, typing } = (await stage.status()).capabilities ?? {};
      assert.deepEqual(
        { media, reactions, replies, typing },
        { media: has("files"), reactions: has("reactions"), replies: has("replies"), typing: has("typing") },
      );
    });

    const question = has("replies")
      ? "an answer stands under its question, and an answer to the agent says so"
      : "an answer that names its question is shown where nothing stands under anything";
    it(`[P7] ${question}`, async () => {
      const ann = await side.person();
      const asked = await ann.say(`why ${MARK}`);
      await taken(ann, asked);
      await sent(ann, `because ${MARK}`, { replyToId: asked });
      const answer = await shows(ann, `because ${MARK}`);
      assert.equal(answer.replyTo, has("replies") ? asked : undefined);
      if (!has("replies")) return;
      const inbound = await taken(ann, await ann.say(`really ${MARK}`, { replyTo: answer.id }));
      assert.equal(inbound.repliedToAgent, true);
      assert.equal(inbound.message.replyToText, `because ${MARK}`);
    });

    if (has("typing"))
      it("[P10] typing is shown, and the answer ends it", async () => {
        const ann = await side.person();
        const typing = (): readonly boolean[] => ann.typing?.() ?? [];
        await stage.call("typing", { accountId: "default", peer: ann.peer, active: true });
        await stage.until("typing", () => typing().includes(true));
        await sent(ann, `done ${MARK}`);
        const { length } = typing();
        await sent(ann, `and more ${MARK}`);
        // A platform may have an end signal; a new begin signal must not follow.
        assert.deepEqual(typing().slice(length).filter(Boolean), []);
      });

    if (has("files"))
      it("[P7] a file is sent from the bucket; a missing file is a failure with a reason", async () => {
        const ann = await side.person();
        const bytes = new TextEncoder().encode(`from the agent ${MARK}`);
        await stage.put("media/out/report.txt", bytes);
        const media = (r2Key: string) => ({ media: [{ type: "document", mimeType: "text/plain", r2Key, filename: "report.txt" }] });
        await sent(ann, `here ${MARK}`, media("media/out/report.txt"));
        assert.deepEqual(await ann.file?.(), bytes);
        const gone = fresh("d");
        await send(ann, "", gone, media("media/out/gone.txt"));
        const report = await stage.report(gone);
        assert.equal(report.state, "failed");
        assert.ok((report.error ?? "").length > 0);
      });

    it("[X17] invalid calls are refused, and the Worker reveals nothing over HTTP", async () => {
      const wrong: readonly (readonly [method: string, params: object])[] = [
        ["send", {}],
        ["send", { accountId: "default", message: { deliveryId: "", kind: "answer", peer: { kind: "dm", id: "x" }, text: "x" } }],
        ["send", { accountId: "../default", message: { deliveryId: "x", kind: "answer", peer: { kind: "dm", id: "x" }, text: "x" } }],
        ["start", { accountId: "a".repeat(65), config: {} }],
        ["status", { accountId: 5 }],
        ["typing", { accountId: "default", peer: { kind: "person", id: "x" }, active: true }],
        ["noSuchMethod", {}],
      ];
      for (const [method, params] of wrong) await assert.rejects(stage.call(method, params), /\S/, `${method} ${JSON.stringify(params)}`);
      for (const path of ["/", "/start", "/status", "/account/default/send", "/.env"]) {
        const response = await stage.fetch(path, { method: "POST", body: "{}" });
        assert.ok(response.status === 404 || response.status === 401, `${path}: ${response.status}`);
      }
    });
  });

  describe(`${channel} stopped and killed`, { concurrency: 1, timeout: 60_000 }, () => {
    it("[P2][P9] queued messages continue after a stop and a start", async () => {
      const ann = await side.person();
      await taken(ann, await ann.say(`before ${MARK}`));
      assert.equal((await stage.call<{ connected: boolean }>("stop", { accountId: "default" })).connected, false);
      const id = fresh("d");
      await send(ann, `waits ${MARK}`, id);
      const said = bringsBacklog ? [await ann.say(`while stopped ${MARK}`)] : [];
      const { outboxWaiting, connected } = await stage.status();
      assert.deepEqual([outboxWaiting, connected], [1, false]);
      assert.deepEqual(textsOf(ann), []);
      await side.start();
      assert.equal((await stage.report(id)).state, "sent");
      assert.deepEqual(textsOf(ann), [`waits ${MARK}`]);
      for (const each of said) await taken(ann, each);
    });

    it("[P2][P9][K22][K23] killed at every step: each message is taken once, each answer shown once, each outcome reported", async () => {
      const never = new Promise<never>(() => {});
      const answered =
        (person: Person) =>
        ({ message }: ChannelInbound): ChannelInboundOutcome => ({
          outcome: "answered",
          replies: [{ deliveryId: `k-${message.id}`, kind: "answer", peer: person.peer, text: `re ${MARK}` }],
        });
      const [told, asked, took, showing, reporting] = [
        await side.person(),
        await side.person(),
        await side.person(),
        await side.person(),
        await side.person(),
      ];
      const people = [told, asked, took, showing, reporting];
      // Acknowledged to the platform; the gateway is away.
      gateway.rules.set(told.peer.id, () => "away");
      // The gateway is called and has not answered.
      gateway.rules.set(asked.peer.id, () => never);
      // The gateway took it; its answer is in flight.
      gateway.rules.set(took.peer.id, (inbound) => ({ lost: answered(took)(inbound) }));
      gateway.rules.set(showing.peer.id, answered(showing));
      gateway.rules.set(reporting.peer.id, answered(reporting));
      const ids = new Map<Person, string>();
      for (const person of [told, asked, took]) ids.set(person, await person.say(`kill ${MARK}`));
      await told.told(ids.get(told) ?? "");
      for (const person of [asked, took]) await stage.until("the gateway was asked", () => callsOf(person).length > 0);
      ids.set(reporting, await reporting.say(`kill ${MARK}`));
      const told2 = `k-${ids.get(reporting)}`;
      gateway.loseReports.add(told2);
      await stage.until("the end is being told", () => gateway.reports.some(({ deliveryId }) => deliveryId === told2));
      // The answer is on the platform; the channel has no confirmation.
      showing.loseAnswer();
      ids.set(showing, await showing.say(`kill ${MARK}`));
      await stage.until("the answer is shown", () => showing.shown().length === 1);
      await stage.kill();

      for (const person of people) gateway.rules.set(person.peer.id, answered(person));
      await stage.boot();
      await side.start();
      for (const person of people) {
        const id = ids.get(person) ?? "";
        await taken(person, id);
        const { state, error } = await stage.until("its end", () => gateway.reports.findLast(({ deliveryId }) => deliveryId === `k-${id}`));
        assert.equal(state, "sent", error);
        assert.deepEqual(textsOf(person), [`re ${MARK}`]);
        assert.equal(gateway.textsOf(person.peer.id).length, 1);
      }
    });

    it("[S5][S17] no message text, secret or person is in the output", () => {
      const { output } = stage;
      const events = output.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Record<string, unknown>] : []));
      // The failures above were logged, so the output is not empty.
      assert.ok(
        events.some(({ event, component }) => event === "hand_over_failed" && component === `channel-${channel}`),
        output,
      );
      for (const secret of [MARK, "example.org", ...side.secrets()]) assert.equal(output.includes(secret), false, secret);
    });
  });
}
