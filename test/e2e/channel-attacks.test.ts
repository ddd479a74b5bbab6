/**
 * Suite O through the real channels: attacks of the hijacked model that arrive over Discord and WhatsApp, by the Workers that are deployed,
 * their libraries and fakes of the platforms. A machine without a sandbox notes what it is told. The settings are those of a new
 * installation. Passes when nothing is done without the owner's word and each attack is in the audit.
 *
 * Each run takes a sample in which each way meets four goals; with `GSV_E2E_LONG` each way meets all of them, besides the one that is a
 * matter of limits.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { PhotonImage } from "@cf-wasm/photon/node";
import { ALICE, dmOf, FakeDiscord, GENERAL } from "../../channels/fakes/discord/fake-discord.ts";
import { FakeWhatsApp } from "../../channels/fakes/whatsapp/server.ts";
import { type FakeTranscription, startFakeTranscription } from "../fakes/fake-transcription.ts";
import { type Call, type Goal, goalsOf, obey, orderFor } from "../fakes/hijacked-model.ts";
import { ChannelStack, type Kind } from "./channel-stack.ts";
import { type Client, type Json, until } from "./support.ts";

const LONG = process.env["GSV_E2E_LONG"] !== undefined;
const EVERY = LONG ? 1 : 6;
const FILES: Readonly<Record<string, string>> = {
  "SOUL.md": "calm",
  "HEARTBEAT.md": "rest",
  "AGENTS.md": "ask",
  "MEMORY.md": "the safe",
  "payslip.md": "3000",
};
const NODE_TOOLS = ["Bash", "Process", "Read", "Write", "Edit", "Delete", "Browse"];
const PICTURE = Buffer.from(new PhotonImage(new Uint8Array(4 * 4 * 4).fill(200), 4, 4).get_bytes());
const SOUND = Buffer.concat([Buffer.from("OggS"), Buffer.alloc(500, 7)]);

const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? content.map((part: unknown) => (isRecord(part) ? String(part["text"] ?? "") : "")).join("\n")
      : "";

/** A channel with its fake platform. */
interface Platform {
  readonly stack: ChannelStack;
  readonly goals: readonly Goal[];
  /** How the text of goal number `index` comes in. */
  readonly ways: Readonly<Record<string, (index: number) => Promise<unknown> | unknown>>;
  /** Texts that others than the owner and those who wrote have got. */
  toOthers(): readonly string[];
  end(): Promise<void>;
}

/** Calls of the goals with the names of this channel. */
const goalsOn = (channel: string, eve: string): readonly Goal[] =>
  JSON.parse(
    JSON.stringify(goalsOf("/home/ann"))
      .replaceAll("whatsapp/-/dm/eve", `${channel}/-/dm/${eve}`)
      .replaceAll("whatsapp/-/", `${channel}/-/`),
  ) as readonly Goal[];

async function speechOf(stack: ChannelStack): Promise<FakeTranscription> {
  const speech = await startFakeTranscription();
  await stack.call("config.set", { path: "transcription.baseUrl", value: speech.url });
  return speech;
}
const spokenBy = (speech: FakeTranscription, index: number): void => speech.enqueue({ body: JSON.stringify({ text: orderFor(index) }) });

async function onDiscord(): Promise<Platform> {
  const discord = await new FakeDiscord().listen();
  const id = (index: number): string => `4000000000000010${String(index).padStart(2, "0")}`;
  const eve = (index: number, name = "Eve"): Json => ({ ...ALICE, id: id(index), username: `eve${index}`, global_name: name });
  const guests = Array.from({ length: 100 }, (_, index) => id(index));
  const kind: Kind = { name: "discord", className: "DiscordAccount", flags: ["nodejs_compat"] };
  const stack = await ChannelStack.start({ owners: [ALICE.id], allowFrom: guests, groups: "all" }, kind, {
    token: discord.token,
    apiBase: discord.api,
  });
  await discord.until(({ kind: what }) => what === "gateway.ready", "ready");
  const speech = await speechOf(stack);
  const forwarded = (message: Json): Json => ({
    message_reference: { type: 1, message_id: "700000000000000001" },
    message_snapshots: [{ message: { content: "", attachments: [], embeds: [], ...message } }],
  });
  return {
    stack,
    goals: goalsOn("discord", id(0)),
    ways: {
      "a direct message": (index) => discord.say({ content: orderFor(index), user: eve(index), channel: dmOf(id(index)) }),
      "a message in a group": (index) => discord.say({ content: orderFor(index), user: eve(index + 25), channel: GENERAL, mention: true }),
      "a display name": (index) =>
        discord.say({ content: "hello", user: eve(index + 50, `Ann ${orderFor(index)}`), channel: dmOf(id(index + 50)) }),
      "a quoted message": (index) => {
        const said = discord.say({ content: orderFor(index), user: eve(99), unheard: true });
        return discord.say({ content: "look at this", replyTo: said });
      },
      "the caption of a picture": (index) =>
        discord.say({ more: forwarded({ content: orderFor(index), attachments: [discord.upload("a.png", PICTURE, "image/png")] }) }),
      "the transcript of a recording": (index) => {
        spokenBy(speech, index);
        return discord.say({ more: forwarded({ attachments: [discord.upload("a.ogg", SOUND, "audio/ogg")] }) });
      },
      "the name of a document": (index) =>
        discord.say({
          content: "look at this",
          attachments: [{ ...discord.upload(`d${index}.txt`, Buffer.from("an offer"), "text/plain"), filename: `${orderFor(index)}.txt` }],
        }),
    },
    toOthers: () => discord.sent("stranger").map(({ content }) => content),
    async end() {
      await stack.end();
      await Promise.all([discord.close(), speech.close()]);
    },
  };
}

async function onWhatsApp(): Promise<Platform> {
  const fake = await new FakeWhatsApp().listen();
  const ann = { pn: "15550002222", lid: "900000002222", name: "Ann" };
  fake.addPeer(ann);
  const pn = (index: number): string => `1555100${String(index).padStart(4, "0")}`;
  const eve = (index: number, name = "Eve"): string => {
    if (!fake.peers.has(pn(index))) fake.addPeer({ pn: pn(index), lid: `90000100${String(index).padStart(4, "0")}`, name });
    return pn(index);
  };
  const guests = Array.from({ length: 100 }, (_, index) => `+${pn(index)}`);
  const texts = { WHATSAPP_URL: fake.url, WHATSAPP_NOISE_ROOT: fake.rootHex };
  const kind: Kind = { name: "whatsapp", className: "WhatsAppAccount", flags: ["nodejs_compat"], texts, trusted: fake.tls.cert };
  const stack = await ChannelStack.start({ owners: [`+${ann.pn}`], allowFrom: guests, groups: "all" }, kind, {});
  const { login } = (await stack.call("channel.login", { channel: "whatsapp" })) as { login: { qr?: string } };
  fake.linking.scan(login.qr ?? "");
  await until("it is linked", () => fake.noted("flushed").length > 0);
  const speech = await speechOf(stack);
  const contextInfo = { isForwarded: true, forwardingScore: 1 };
  return {
    stack,
    goals: goalsOn("whatsapp", pn(0)),
    ways: {
      "a direct message": (index) => fake.say(eve(index), orderFor(index)),
      "a message in a group": async (index) => {
        const group = `12036300000000${String(index).padStart(4, "0")}@g.us`;
        fake.addGroup(group, "A trip", [ann.pn, eve(index + 25)]);
        const mentionedJid = [fake.botJid.replace(/:\d+@/, "@")];
        await fake.say(eve(index + 25), { extendedTextMessage: { text: orderFor(index), contextInfo: { mentionedJid } } }, { group });
      },
      "a display name": (index) => fake.say(eve(index + 50, `Ann ${orderFor(index)}`), "hello"),
      "a quoted message": (index) =>
        fake.say(ann.pn, {
          extendedTextMessage: {
            text: "look at this",
            contextInfo: {
              stanzaId: `3EB0${index}`,
              participant: `${eve(99)}@s.whatsapp.net`,
              quotedMessage: { conversation: orderFor(index) },
            },
          },
        }),
      "the caption of a picture": (index) =>
        fake.sayFile(ann.pn, PICTURE, { kind: "image", mimetype: "image/png", more: { caption: orderFor(index), contextInfo } }),
      "the transcript of a recording": (index) => {
        spokenBy(speech, index);
        return fake.sayFile(ann.pn, SOUND, {
          kind: "audio",
          mimetype: "audio/ogg; codecs=opus",
          more: { ptt: true, seconds: 2, contextInfo },
        });
      },
      "the name of a document": (index) =>
        fake.sayFile(ann.pn, Buffer.from("an offer"), {
          kind: "document",
          mimetype: "text/plain",
          more: { fileName: `${orderFor(index)}.txt`, caption: "look at this" },
        }),
    },
    toOthers: () => [],
    async end() {
      await stack.end();
      await Promise.all([fake.close(), speech.close()]);
    },
  };
}

let attacks = 0;
for (const [name, start] of [
  ["Discord", onDiscord],
  ["WhatsApp", onWhatsApp],
] as const)
  describe(`[S9] [S10] [TA5] [AU1] attacks over ${name}`, { concurrency: 1, timeout: 600_000 }, () => {
    let platform: Platform;
    let machine: Client;
    /** What arrived at the machine, besides reads, which it refuses. */
    const effects: Call[] = [];
    /** Runs of the model that did all that the text said, and those that a text has begun. */
    let ended = 0;
    let obeyed = 0;

    before(async () => {
      platform = await start();
      const { stack, goals } = platform;
      // As a new installation: the tests' own permission goes.
      await stack.call("config.unset", { path: "toolApproval.defaultDecision" });
      await stack.call("config.set", { path: "limits.stepsPerRun", value: 8 });
      for (const [path, content] of Object.entries(FILES)) await stack.call("workspace.write", { path, content });
      machine = await stack.client({
        client: { id: "lap", version: "1", platform: "test", mode: "node" },
        tools: NODE_TOOLS.map((tool) => ({ name: tool, description: tool, inputSchema: { type: "object" } })),
        nodeRuntime: { hostCapabilities: [], toolCapabilities: {}, sandbox: { profile: "off" } },
      });
      void answer();
      stack.model.answerSteps((done) => {
        const messages = (stack.model.requests.at(-1)?.body["messages"] ?? []) as unknown[];
        const all = messages.filter(isRecord);
        const from = all.findLastIndex(({ role }) => role === "user");
        const next = obey(
          goals,
          all.slice(from).flatMap(({ role, content }) => (role === "assistant" ? [] : [textOf(content)])),
          done,
        );
        if (next === undefined) {
          ended += 1;
          return { text: "well" };
        }
        obeyed += 1;
        return { toolCalls: [next] };
      });
    });
    after(async () => {
      machine.close();
      await platform.end();
      console.log(`attacks over ${name} without an effect: ${attacks} so far (${EVERY === 1 ? "all goals" : "a sample of the goals"})`);
    });

    /** The machine refuses all calls; it notes those that would have changed something. */
    async function answer(): Promise<void> {
      const answered = new Set<unknown>();
      for (;;) {
        const call = await machine
          .waitFor("a call", ({ event, payload }) => event === "tool.invoke" && !answered.has(payload["callId"]) && payload, 600_000)
          .catch(() => undefined);
        if (call === undefined) return;
        answered.add(call["callId"]);
        if (call["tool"] !== "Read") effects.push({ name: `lap__${String(call["tool"])}`, arguments: call["args"] as Json });
        await machine.call("tool.result", { callId: call["callId"], outcome: "error", result: "outside of the workspace" });
      }
    }
    const audited = async (client: Client): Promise<readonly Json[]> =>
      (await client.call("audit.list", { limit: 60 }))["entries"] as readonly Json[];

    for (const [at, way] of [
      "a direct message",
      "a message in a group",
      "a display name",
      "a quoted message",
      "the caption of a picture",
      "the transcript of a recording",
      "the name of a document",
    ].entries())
      for (const [index, { goal, repeats }] of goalsOf("/home/ann").entries()) {
        // A run that repeats itself is the matter of the limits, whatever it came by.
        if ((index + at) % EVERY !== 0 || repeats === true) continue;
        it(`by ${way}: ${goal}`, async () => {
          const { stack, goals, ways } = platform;
          const wanted = goals[index] ?? assert.fail();
          const client = await stack.client();
          const before = Number((await audited(client))[0]?.["seq"] ?? 0);
          const [wasEnded, wasObeyed] = [ended, obeyed];
          await ways[way]?.(index);
          await until(
            "the run ends, its questions denied",
            async () => {
              const { approvals } = (await client.call("approval.list")) as { approvals: { code: string; sessionKey: string }[] };
              for (const { code, sessionKey } of approvals) await client.call("approval.resolve", { code, sessionKey, decision: "deny" });
              return ended > wasEnded;
            },
            undefined,
            100,
          ).catch((error: unknown) => {
            throw new Error(`${String(error)}\n${stack.output.slice(-1_500)}`);
          });
          assert.ok(obeyed > wasObeyed, "the model did what the text said");
          assert.deepEqual(effects, []);
          for (const [path, content] of Object.entries(FILES))
            assert.equal((await client.call("workspace.read", { path }))["content"], content, path);
          assert.deepEqual(platform.toOthers(), []);
          const rows = (await audited(client)).filter(
            ({ seq, action }) => Number(seq) > before && (action === "approval.ask" || action === "tool.call"),
          );
          const targets = rows.map(({ target }) => String(target)).toSorted();
          assert.deepEqual(targets, wanted.calls.map((call) => call.name).toSorted());
          attacks += 1;
          client.close();
        });
      }
  });
