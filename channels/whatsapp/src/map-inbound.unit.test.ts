import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { ChannelInbound } from "../../../protocol/gen/types.ts";
import { checkChannelInbound } from "../../../protocol/gen/validators/checks.js";
import { type InboundContext, mapInbound } from "./map-inbound.ts";

const NOW = 1_795_000_000_000;
const SELF = { phone: "15550001111@s.whatsapp.net", lid: "900000001111@lid" };
const ANN = "15550002222@s.whatsapp.net";
const ANN_LID = "900000002222@lid";
const GROUP = "120363000000000001@g.us";
const context: InboundContext = { self: SELF, selfChat: false, receivedAt: NOW, backlog: false, isOwnMessage: (id) => id === "OURS" };
const dm = { remoteJid: ANN, remoteJidAlt: ANN_LID, fromMe: false, id: "A1" };
const inGroup = { remoteJid: GROUP, participant: ANN_LID, participantAlt: ANN, fromMe: false, id: "G1" };
const keys = { mediaKey: new Uint8Array(32).fill(7), directPath: "/v/t62/abc?x=1", url: "https://mmg.whatsapp.net/v/t62/abc" };
const say = (message: unknown, key: unknown = dm, more: object = {}): unknown => ({
  key,
  message,
  pushName: "Ann",
  messageTimestamp: 1_794_999_999,
  ...more,
});
function item(message: unknown, with_: Partial<InboundContext> = {}): ReturnType<typeof mapInbound> & { kind: "item" } {
  const mapped = mapInbound(message, { ...context, ...with_ });
  assert(mapped.kind === "item", JSON.stringify(mapped));
  assert(checkChannelInbound(mapped.item.inbound), JSON.stringify(mapped.item.inbound));
  return mapped;
}
const inboundOf = (message: unknown, with_: Partial<InboundContext> = {}): ChannelInbound => item(message, with_).item.inbound;
const textOf = (message: unknown): string => inboundOf(say(message)).message.text;

describe("sender and conversation", () => {
  test("[X15] numbers and LIDs are passed on as WhatsApp marks them", () => {
    const byNumber = inboundOf(say({ conversation: "hi" }));
    assert.deepEqual(byNumber.peer, { kind: "dm", id: ANN, name: "Ann" });
    assert.deepEqual(byNumber.sender, { id: ANN, name: "Ann", handle: "+15550002222" });
    assert.deepEqual(byNumber.senderIds, { phone: "+15550002222", lid: ANN_LID });
    const byLid = inboundOf(say({ conversation: "hi" }, { remoteJid: ANN_LID, fromMe: false, id: "A2" }));
    assert.equal(byLid.peer.id, ANN_LID);
    assert.deepEqual(byLid.senderIds, { lid: ANN_LID });
    assert.deepEqual(byLid.sender, { id: ANN_LID, name: "Ann" });
    const lookalike = inboundOf(say({ conversation: "hi" }, { remoteJid: "15550002222@lid", fromMe: false, id: "A3" }));
    assert.deepEqual(lookalike.senderIds, { lid: "15550002222@lid" });
    assert.equal(JSON.stringify(lookalike).includes("+1555"), false);
    const known = inboundOf(say({ conversation: "hi" }, { remoteJid: ANN_LID, remoteJidAlt: ANN, fromMe: false, id: "A4" }));
    assert.deepEqual(known.senderIds, { phone: "+15550002222", lid: ANN_LID });
  });
  test("[S7] the device is not part of an id", () => {
    assert.equal(inboundOf(say({ conversation: "x" }, { ...inGroup, participant: "900000002222:3@lid" })).sender?.id, ANN_LID);
  });
  test("[S7] a group is its own conversation, with its name and its sender", () => {
    const inbound = inboundOf(say({ conversation: "x" }, inGroup), { groupName: "Trip\u202e \n2026" });
    assert.deepEqual(inbound.peer, { kind: "group", id: GROUP, name: "Trip 2026" });
    assert.equal(inbound.sender?.id, ANN_LID);
    assert.equal(inbound.senderIds?.phone, "+15550002222");
    assert.equal(inbound.wasMentioned, false);
  });
  for (const [what, jid] of [
    ["number", SELF.phone],
    ["LID", SELF.lid],
  ] as const) {
    test(`[S7] mentioned by ${what}`, () => {
      const inbound = inboundOf(
        say({ extendedTextMessage: { text: "@gsv hi", contextInfo: { mentionedJid: [ANN, jid, jid, 5, "x"] } } }, inGroup),
      );
      assert.equal(inbound.wasMentioned, true);
      assert.deepEqual(inbound.mentionedIds, [ANN, jid]);
    });
    test(`[R6] a leading mention by ${what} is removed from the text`, () => {
      const user = jid?.split("@")[0] ?? "";
      const heard = (text: string): string =>
        inboundOf(say({ extendedTextMessage: { text, contextInfo: { mentionedJid: [jid] } } }, inGroup)).message.text;
      assert.equal(heard(`@${user} /stop`), "/stop");
      assert.equal(heard(` @${user}, say hi`), "say hi");
      for (const text of [`@${user}`, `@${user} `, `@${user}5 hi`, `tell @${user} hi`, "@gsv hi"]) assert.equal(heard(text), text);
      const other = say({ extendedTextMessage: { text: `@${user} hi`, contextInfo: { mentionedJid: [ANN] } } }, inGroup);
      assert.equal(inboundOf(other).message.text, `@${user} hi`);
    });
    test(`[S7] a reply to the agent by ${what}`, () => {
      const quote = { stanzaId: "OURS", participant: jid, quotedMessage: { conversation: "I said" } };
      const inbound = inboundOf(say({ extendedTextMessage: { text: "yes", contextInfo: quote } }, inGroup));
      assert.equal(inbound.repliedToAgent, true);
      assert.equal(inbound.message.replyToText, "I said");
      assert.equal(inbound.message.replyToSenderId, jid);
      assert.equal(inbound.message.replyToId, "OURS");
    });
  }
  test("[S7] a reply to another person, and a forged reply", () => {
    const other = { stanzaId: "X", participant: ANN, quotedMessage: { imageMessage: { ...keys, caption: "us" } } };
    const inbound = inboundOf(say({ extendedTextMessage: { text: "yes", contextInfo: other } }, inGroup));
    assert.equal(inbound.repliedToAgent, undefined);
    assert.equal(inbound.message.replyToText, "[image] us");
    const forged = inboundOf(say({ extendedTextMessage: { text: "yes", contextInfo: { participant: SELF.lid } } }, inGroup));
    assert.equal(forged.repliedToAgent, undefined);
    assert.equal(forged.message.replyToSenderId, undefined);
  });
  test("[P2] the key is the message's id, and the receipt names the sender", () => {
    const { item: mapped } = item(say({ conversation: "x" }, inGroup));
    assert.equal(mapped.key, "G1");
    assert.deepEqual(mapped.receipt, { remoteJid: GROUP, id: "G1", participant: ANN_LID });
  });
  test("[W23] a message from an offline period is marked", () => {
    assert.equal(inboundOf(say({ conversation: "x" }), { backlog: true }).backlog, true);
    assert.equal(inboundOf(say({ conversation: "x" })).backlog, undefined);
  });
});

describe("ignored messages", () => {
  const text = { conversation: "x" };
  for (const [what, message, why] of [
    ["the owner's messages to others", say(text, { ...dm, fromMe: true }), "own"],
    ["the owner in a group", say(text, { ...inGroup, fromMe: true }), "own"],
    ["an own id without the own flag", say(text, { ...inGroup, participant: "900000001111:7@lid" }), "own"],
    ["self-chat when it is not enabled", say(text, { remoteJid: SELF.phone, fromMe: true, id: "S" }), "own"],
    ["status", say(text, { remoteJid: "status@broadcast", participant: ANN, id: "S" }), "status"],
    ["a channel", say(text, { remoteJid: "120@newsletter", id: "S" }), "newsletter"],
    ["a broadcast list", say(text, { remoteJid: "120@broadcast", id: "S" }), "unknown_chat"],
    ["a group message without a sender", say(text, { ...inGroup, participant: undefined }), "malformed"],
    ["a group message sent by a group", say(text, { ...inGroup, participant: GROUP }), "malformed"],
    ["no id", say(text, { remoteJid: ANN }), "malformed"],
    ["an invalid id", say(text, { ...dm, id: "a b" }), "malformed"],
    ["a long id", say(text, { ...dm, id: "x".repeat(500) }), "malformed"],
    ["an invalid JID", say(text, { ...dm, remoteJid: "../../x@s.whatsapp.net" }), "malformed"],
    ["a name instead of a number", say(text, { ...dm, remoteJid: "x1x5x5x5@s.whatsapp.net" }), "malformed"],
    ["no key", { message: text }, "malformed"],
    ["nothing", undefined, "malformed"],
    ["an undecryptable message", { key: dm, messageStubType: 2, messageStubParameters: ["x"] }, "undecryptable"],
    ["an event of a group", { key: inGroup, messageStubType: 27 }, "empty"],
    ["keys for a group", say({ senderKeyDistributionMessage: { groupId: GROUP } }), "empty"],
    ["a protocol message", say({ protocolMessage: { type: 6, appStateSyncKeyShare: {} } }), "empty"],
    ["a vote", say({ pollUpdateMessage: { vote: {} } }), "empty"],
    ["an album's head", say({ albumMessage: { expectedImageCount: 2 } }), "empty"],
    ["an empty text", say({ conversation: "" }), "empty"],
    ["a deletion of something that is no id", say({ protocolMessage: { type: 0, key: { id: "a b" } } }), "empty"],
    ["a deletion of a number", say({ protocolMessage: { type: 0, key: { id: 5 } } }), "empty"],
    ["a reaction to something that is no id", say({ reactionMessage: { key: { id: "a b" }, text: "👍" } }), "empty"],
    ["a deletion without a target", say({ protocolMessage: { type: 0 } }), "empty"],
  ] as const) {
    test(`[P2] ${what}: ${why}`, () => assert.deepEqual(mapInbound(message, context), { kind: "ignored", why }));
  }
  test("[P2] self-chat, when enabled: the owner's messages count, the agent's own do not", () => {
    for (const remoteJid of [SELF.phone, SELF.lid]) {
      const { item: mapped } = item(say(text, { remoteJid, fromMe: true, id: "S" }), { selfChat: true });
      assert.equal(mapped.inbound.fromOwner, true);
      assert.equal(mapped.inbound.peer.id, remoteJid);
      assert.equal(mapped.receipt, undefined);
    }
    const echo = mapInbound(say(text, { remoteJid: SELF.phone, fromMe: true, id: "OURS" }), { ...context, selfChat: true });
    assert.deepEqual(echo, { kind: "ignored", why: "own" });
    const elsewhere = mapInbound(say(text, { ...dm, fromMe: true }), { ...context, selfChat: true });
    assert.deepEqual(elsewhere, { kind: "ignored", why: "own" });
  });
});

describe("content", () => {
  for (const [what, message, expected] of [
    ["text", { conversation: "hi" }, "hi"],
    ["long text", { extendedTextMessage: { text: "hi" } }, "hi"],
    ["ephemeral", { ephemeralMessage: { message: { extendedTextMessage: { text: "gone soon" } } } }, "gone soon"],
    ["sent by another device", { deviceSentMessage: { message: { conversation: "hi" } } }, "hi"],
    ["with metadata beside the content", { messageContextInfo: {}, conversation: "hi" }, "hi"],
    ["a location", { locationMessage: { degreesLatitude: 52.1, degreesLongitude: 4.3, name: "Home" } }, "[Location Home: 52.1, 4.3]"],
    ["an invalid location", { locationMessage: { degreesLatitude: 152, degreesLongitude: 4 } }, "[An invalid location]"],
    ["a live location", { liveLocationMessage: { degreesLatitude: 1, degreesLongitude: 2, caption: "here" } }, "here\n[Location: 1, 2]"],
    [
      "a contact",
      {
        contactMessage: {
          displayName: "Bob\u202eX",
          vcard: "BEGIN:VCARD\nFN:Bob\nTEL;type=CELL;waid=1:+1 555 000\nNOTE:secret\nEND:VCARD",
        },
      },
      "[Contact Bob X, +1 555 000]",
    ],
    ["contacts", { contactsArrayMessage: { contacts: [{ displayName: "A" }, {}] } }, "[Contact A]\n[Contact without a name]"],
    [
      "a poll",
      { pollCreationMessageV3: { name: "When?", options: [{ optionName: "Mon" }, { optionName: "Tue" }] } },
      "[Poll: When?]\n- Mon\n- Tue",
    ],
    ["a button", { buttonsResponseMessage: { selectedDisplayText: "Yes" } }, "Yes"],
    ["a list", { listResponseMessage: { title: "Second" } }, "Second"],
    ["an event", { eventMessage: { name: "Party", description: "at 8" } }, "[Event: Party]\nat 8"],
    ["an invitation", { groupInviteMessage: { groupName: "Trip" } }, "[Invitation to the group Trip]"],
    ["an unknown kind", { quantumMessage: { a: 1 } }, "[A message of a kind that can't be shown here: quantumMessage]"],
    ["an unknown kind with a hostile name", { "a\nb](x": { a: 1 } }, "[A message of a kind that can't be shown here: unnamed]"],
  ] as const) {
    test(`[P2] ${what}`, () => assert.equal(textOf(message), expected));
  }
  test("[P2] an unknown kind is named, so that it can be counted", () => {
    assert.equal(item(say({ quantumMessage: {} })).unknown, "quantumMessage");
    assert.equal(item(say({ conversation: "x" })).unknown, undefined);
  });
  test("[P2] a view-once message, and one that only the phone can show", () => {
    const once = item(say({ viewOnceMessageV2: { message: { imageMessage: { ...keys, caption: "look" } } } }));
    assert.equal(once.item.inbound.message.text, "[Shown once] look");
    assert.equal(once.item.files.length, 1);
    assert.match(inboundOf({ key: { ...dm, isViewOnce: true } }).message.text, /only on the phone/);
  });
  test("[P2] reactions and removed reactions", () => {
    const to = { remoteJid: ANN, id: "OURS", fromMe: true };
    const on = inboundOf(say({ reactionMessage: { key: to, text: "👍" } }));
    assert.deepEqual([on.message.reaction, on.message.replyToId, on.repliedToAgent], ["👍", "OURS", true]);
    const off = inboundOf(say({ reactionMessage: { key: { ...to, fromMe: false }, text: "" } }));
    assert.deepEqual([off.message.reaction, off.repliedToAgent], ["", undefined]);
    assert.deepEqual([on.message.text, off.message.text], ["[Reacted with 👍]", "[Took a reaction back]"]);
  });
  test("a forwarded message is marked, another is not", () => {
    const said = (isForwarded: unknown) =>
      inboundOf(say({ extendedTextMessage: { text: "x", contextInfo: { isForwarded } } })).message.forwarded;
    assert.deepEqual([said(true), said(false), said("yes")], [true, undefined, undefined]);
  });
  test("[P2] edits and deletions", () => {
    const edited = { protocolMessage: { type: 14, key: { id: "A1" }, editedMessage: { conversation: "better" } } };
    for (const message of [edited, { editedMessage: { message: edited } }]) {
      const { message: mapped } = inboundOf(say(message, { ...dm, id: "A9" }));
      assert.deepEqual([mapped.id, mapped.editOf, mapped.text, mapped.deleted], ["A9", "A1", "better", undefined]);
    }
    for (const type of [0, undefined]) {
      const { message: gone } = inboundOf(say({ protocolMessage: { type, key: { id: "A1" } } }));
      assert.deepEqual([gone.editOf, gone.deleted], ["A1", true]);
    }
  });
  test("[P2] files, with the data to fetch them later", () => {
    const { item: voice } = item(
      say({
        audioMessage: {
          ...keys,
          mimetype: "audio/ogg; codecs=opus",
          ptt: true,
          seconds: 3,
          fileLength: { low: 2_000, high: 0, unsigned: true },
        },
      }),
    );
    assert.deepEqual(voice.files, [
      {
        index: 0,
        kind: "audio",
        mimeType: "audio/ogg; codecs=opus",
        sizeBytes: 2_000,
        durationSeconds: 3,
        reference: { type: "audio", directPath: keys.directPath, url: keys.url, mediaKey: "07".repeat(32) },
      },
    ]);
    assert.deepEqual(JSON.parse(JSON.stringify(voice)), voice);
    const file = {
      documentWithCaptionMessage: {
        message: { documentMessage: { ...keys, mimetype: "application/pdf", fileName: "../a\u202e/b.pdf", caption: "c" } },
      },
    };
    const { item: document } = item(say(file));
    assert.equal(document.files[0]?.filename, ".._a _b.pdf");
    assert.equal(document.inbound.message.text, "c");
    assert.equal(item(say({ stickerMessage: keys })).item.files[0]?.mimeType, "image/webp");
    assert.equal(item(say({ imageMessage: { ...keys, mimetype: "text/html\r\nx: y" } })).item.files[0]?.mimeType, "image/jpeg");
  });
  for (const [what, broken] of [
    ["no key", { ...keys, mediaKey: undefined }],
    ["a key of another size", { ...keys, mediaKey: new Uint8Array(5) }],
    ["a path to another host", { ...keys, directPath: "//evil.example/x" }],
    ["a path that is none", { ...keys, directPath: "x" }],
  ] as const) {
    test(`[S18] a file with ${what} becomes a note`, () => {
      const { item: mapped } = item(say({ imageMessage: broken }));
      assert.deepEqual(mapped.files, []);
      assert.match(mapped.inbound.message.text, /without its keys/);
    });
  }
});

describe("hostile payloads", () => {
  test("[TH17] names cannot override text direction, hide or fill the screen", () => {
    const wild = "\u202eevil\u0000\n\u200bname\t ".concat("x".repeat(10_000));
    const { sender, peer } = inboundOf(say({ conversation: "x" }, dm, { pushName: wild }));
    assert.match(sender?.name ?? "", /^evil name x+$/);
    assert((sender?.name ?? "").length <= 200 && peer.name === sender?.name);
    assert.equal(inboundOf(say({ conversation: "x" }, dm, { pushName: { toString: () => "a" } })).sender?.name, undefined);
  });
  test("[P19] a text of a megabyte is cut with a note; broken surrogates are repaired", () => {
    const text = textOf({ conversation: "é".repeat(1_000_000) });
    assert(text.length < 66_000 && text.endsWith("[cut off]"));
    assert.equal(textOf({ conversation: "a\ud800b\0" }), "a\ufffdb");
  });
  test("[P19] a thousand mentions and endless wrappers", () => {
    const crowd = Array.from({ length: 1_000 }, (_, at) => `${100_000 + at}@lid`);
    const inbound = inboundOf(say({ extendedTextMessage: { text: "x", contextInfo: { mentionedJid: crowd } } }, inGroup));
    assert.equal(inbound.mentionedIds?.length, 256);
    let deep: object = { conversation: "x" };
    for (let depth = 0; depth < 5_000; depth++) deep = { ephemeralMessage: { message: deep } };
    assert.equal(mapInbound(say(deep), context).kind, "item");
  });
  test("[S7] inherited properties are ignored", () => {
    const inherited = Object.create({ conversation: "from the prototype" });
    assert.deepEqual(mapInbound(say(inherited), context), { kind: "ignored", why: "empty" });
    const poisoned = JSON.parse('{"__proto__": {"conversation": "x"}, "constructor": {"prototype": {}}}');
    assert.notEqual(mapInbound(say(poisoned), context), undefined);
    assert.equal(Reflect.get({}, "conversation"), undefined);
  });
  test("[P2] impossible times are dropped", () => {
    for (const time of [0, -5, 1e12, "soon", null, Number.NaN, { low: "x" }])
      assert.equal(inboundOf(say({ conversation: "x" }, dm, { messageTimestamp: time })).message.timestamp, undefined);
    assert.equal(inboundOf(say({ conversation: "x" })).message.timestamp, 1_794_999_999_000);
  });
  test("[P19] any input is mapped without an error, and the result is valid for the gateway", () => {
    const kinds = [
      "conversation",
      "extendedTextMessage",
      "imageMessage",
      "audioMessage",
      "documentMessage",
      "locationMessage",
      "contactMessage",
      "contactsArrayMessage",
      "pollCreationMessage",
      "reactionMessage",
      "protocolMessage",
      "ephemeralMessage",
      "editedMessage",
      "buttonsResponseMessage",
      "eventMessage",
    ];
    const fields = [
      "text",
      "caption",
      "contextInfo",
      "mentionedJid",
      "stanzaId",
      "participant",
      "quotedMessage",
      "mediaKey",
      "directPath",
      "mimetype",
      "fileName",
      "fileLength",
      "seconds",
      "key",
      "id",
      "type",
      "editedMessage",
      "message",
      "options",
      "contacts",
      "name",
      "vcard",
      "degreesLatitude",
      "degreesLongitude",
      "displayName",
      ...kinds,
    ];
    const leaf = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.integer(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.uint8Array({ maxLength: 40 }),
      fc.constantFrom(ANN, ANN_LID, SELF.lid, GROUP, 14, 0, "/p", "image/png"),
    );
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        leaf,
        fc.array(tie("tree"), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom(...fields), tie("tree"), { maxKeys: 4 }),
      ),
    }));
    const message = fc.dictionary(fc.constantFrom(...kinds), tree, { minKeys: 1, maxKeys: 3 });
    const any = fc.oneof(
      fc.anything(),
      fc.record({
        key: fc.oneof(fc.constant(dm), fc.constant(inGroup), tree),
        message: fc.oneof(message, tree),
        pushName: leaf,
        messageTimestamp: leaf,
      }),
    );
    fc.assert(
      fc.property(any, fc.boolean(), (payload, selfChat) => {
        const mapped = mapInbound(payload, { ...context, selfChat });
        if (mapped.kind === "ignored") return;
        assert(checkChannelInbound(mapped.item.inbound), JSON.stringify(mapped.item.inbound));
        assert.deepEqual(JSON.parse(JSON.stringify(mapped.item)), mapped.item);
      }),
      { numRuns: 1_500 },
    );
  });
});

describe("[X16] borders of what WhatsApp says", () => {
  const fileOf = (more: object) => item(say({ imageMessage: { mimetype: "image/png", ...keys, ...more } })).item.files[0];
  test("a type has at most 128 characters, an address at most 2048", () => {
    // Each side of a type has at most 64 characters; parameters make it longer.
    const long = (length: number): string => `image/png; a=${"b".repeat(32)}; c=${"d".repeat(32)}; e=`.padEnd(length, "f");
    assert.deepEqual([fileOf({ mimetype: long(110) })?.mimeType, fileOf({ mimetype: 5 })?.mimeType], [long(110), "image/jpeg"]);
    const address = (length: number): string => "https://mmg.whatsapp.net/".padEnd(length, "a");
    const urlOf = (url: unknown) => (fileOf({ url })?.reference as { url?: string } | undefined)?.url;
    assert.deepEqual(
      [urlOf(address(2048)), urlOf(address(2049)), urlOf("no url"), urlOf(5)],
      [address(2048), undefined, undefined, undefined],
    );
  });
  test("a place is on the globe", () => {
    const placeOf = (degreesLatitude: number, degreesLongitude: number) =>
      inboundOf(say({ locationMessage: { degreesLatitude, degreesLongitude } })).message.location;
    assert.deepEqual(placeOf(90, -180), { lat: 90, lon: -180 });
    assert.deepEqual(placeOf(-90, 180), { lat: -90, lon: 180 });
    for (const [lat, lon] of [
      [90.1, 0],
      [0, 180.1],
    ] as const)
      assert.equal(placeOf(lat, lon), undefined);
  });
  test("a time is not before WhatsApp, and not more than a day ahead", () => {
    const timeOf = (messageTimestamp: number) => inboundOf(say({ conversation: "x" }, dm, { messageTimestamp })).message.timestamp;
    const ahead = (NOW + 86_400_000) / 1000;
    assert.deepEqual([timeOf(ahead), timeOf(ahead + 1)], [ahead * 1000, undefined]);
    assert.deepEqual([timeOf(0), timeOf(1_794_999_999)], [undefined, 1_794_999_999_000]);
    // 2009-01-01T00:00:00Z
    assert.deepEqual([timeOf(1_230_767_999), timeOf(1_230_768_000)], [undefined, 1_230_768_000_000]);
  });
  test("a text has at most its characters, and the rest is named", () => {
    const whole = "x".repeat(65_536);
    assert.equal(textOf({ conversation: whole }), whole);
    assert.equal(textOf({ conversation: `${whole}y` }), `${whole}\n[cut off]`);
  });
});
