import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type AgentBinding, type AgentConfig, asAgentId, type DmScope } from "../../../../protocol/gen/types.ts";
import { agentsOf, defaultAgentOf, withAgent } from "./agents.ts";
import { agentFor, matches, type Origin, routeInbound, type RoutingConfig } from "./bindings.ts";
import { compileLinks, e164, isKeyText, type Peer, peerName, personOf } from "./identity-links.ts";
import { canonicalKey } from "./session-keys.ts";

const binding = (agentId: string, match: AgentBinding["match"]): AgentBinding => ({ agentId: asAgentId(agentId), match });
const from = (more: Partial<Omit<Origin, "peer">> = {}, peer: Partial<Origin["peer"]> = {}): Origin => ({
  channel: "discord",
  accountId: "default",
  ...more,
  peer: { kind: "dm", id: "123", ...peer },
});
const config = (more: Partial<RoutingConfig> = {}): RoutingConfig => ({
  bindings: [],
  agents: new Set(["main", "work", "fun"]),
  defaultAgent: "main",
  dmScope: "per-channel-peer",
  mainKey: "main",
  links: compileLinks({}),
  ...more,
});

describe("[P3.1] the list of agents", () => {
  const agent = (id: string, isDefault?: boolean): AgentConfig => ({
    id: asAgentId(id),
    ...(isDefault === undefined ? {} : { default: isDefault }),
  });
  it("main always exists, and exactly one agent is the default", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(fc.constantFrom("main", "a", "b", "c"), fc.option(fc.boolean(), { nil: undefined })), {
          selector: ([id]) => id,
        }),
        (given) => {
          const list = given.map(([id, isDefault]) => agent(id, isDefault));
          const all = agentsOf(list);
          assert.equal(all.filter(({ id }) => id === "main").length, 1);
          assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
          assert.equal(all[0]?.id, defaultAgentOf(list));
          for (const { id } of list) assert.ok(all.some((other) => other.id === id));
          const more = withAgent(list, agent("new", true));
          assert.equal(defaultAgentOf(more), "new");
          assert.equal(more.filter((other) => other.default === true).length, 1);
          assert.equal(defaultAgentOf(withAgent(list, agent("new"))), defaultAgentOf(list));
        },
      ),
    );
    assert.deepEqual(agentsOf(undefined), [{ id: "main" }]);
  });
  it("a key without an agent belongs to the default agent", () => {
    for (const raw of ["main", " main ", "home"]) {
      const found = canonicalKey(raw, "home", "work");
      assert.equal(found.ok && found.key, "agent:work:home", raw);
    }
    const named = canonicalKey("agent:main:main", "main", "work");
    assert.equal(named.ok && named.key, "agent:main:main");
  });
});

describe("[AG4][P3.1] bindings: the first match decides", () => {
  const rows: readonly [string, AgentBinding["match"], Origin, boolean][] = [
    ["nothing said matches anything", {}, from(), true],
    ["channel", { channel: "discord" }, from(), true],
    ["channel, spelled otherwise", { channel: " Discord" }, from({ channel: "DISCORD" }), true],
    ["another channel", { channel: "whatsapp" }, from(), false],
    ["account", { accountId: "Work" }, from({ accountId: "work" }), true],
    ["no account is the default one", { accountId: "default" }, from({ accountId: "" }), true],
    ["another account", { accountId: "work" }, from(), false],
    ["kind", { peer: { kind: "dm" } }, from(), true],
    ["another kind", { peer: { kind: "group" } }, from(), false],
    ["id", { peer: { id: "123" } }, from(), true],
    ["ids keep their case", { peer: { id: "abc" } }, from({}, { id: "ABC" }), false],
    ["all must match", { channel: "discord", peer: { kind: "dm", id: "124" } }, from(), false],
    [
      "a number, written otherwise",
      { peer: { id: "+31 6-1234 5678" } },
      from({}, { id: "31612345678@s.whatsapp.net", phone: "31612345678" }),
      true,
    ],
    ["[X15] digits that are no number", { peer: { id: "+31612345678" } }, from({}, { id: "31612345678@lid" }), false],
  ];
  for (const [name, match, origin, expected] of rows) it(name, () => assert.equal(matches(binding("work", match), origin), expected));
  it("the first wins; without one the default agent answers", () => {
    const bindings = [
      binding("work", { channel: "discord", peer: { id: "9" } }),
      binding("fun", { channel: "discord" }),
      binding("work", {}),
    ];
    assert.deepEqual(agentFor(from(), config({ bindings })), { agentId: "fun", known: true });
    assert.deepEqual(agentFor(from({}, { id: "9" }), config({ bindings })), { agentId: "work", known: true });
    assert.deepEqual(agentFor(from({ channel: "x" }), config({ bindings: bindings.slice(0, 2) })), { agentId: "main", known: true });
  });
  it("a binding to an unknown agent lets no other agent answer", () => {
    const bindings = [binding("ghost", { channel: "discord" }), binding("work", {})];
    assert.deepEqual(routeInbound(from(), config({ bindings })), { ok: false, problem: "unknown-agent", agentId: "ghost" });
  });
});

describe("[P3.1] phone numbers in E.164 form", () => {
  for (const written of ["+31612345678", "+31 6 1234 5678", " +31 (0)6-12.34.56.78", "+31/612345678"])
    it(written, () => assert.equal(e164(written, "written"), "+31612345678"));
  it("from a platform the plus may be missing", () => assert.equal(e164("31612345678", "platform"), "+31612345678"));
  for (const none of [
    "",
    "+",
    "31612345678",
    "+0612345678",
    "+3161234x678",
    "+123456",
    "+1234567890123456",
    "x1x5x5x5",
    "++31612345678",
    "١٢٣٤٥٦٧٨",
  ])
    it(`not ${JSON.stringify(none)}`, () => assert.equal(e164(none, "written"), undefined));
});

describe("[P3.1] [S7] identity links", () => {
  const links = compileLinks({ alice: ["+31612345678", "discord:123", "Discord:456"], bob: ["whatsapp:+49 170 1234567", "signal:a:b"] });
  const peer = (channel: string, id: string, phone?: string): Peer => ({ channel, id, ...(phone === undefined ? {} : { phone }) });
  it("a phone number identifies a person on any channel that marks it as a number", () => {
    assert.equal(personOf(links, peer("whatsapp", "31612345678@s.whatsapp.net", "31612345678")), "alice");
    assert.equal(personOf(links, peer("signal", "uuid", "+31 612345678")), "alice");
    assert.equal(personOf(links, peer("whatsapp", "31612345678@lid")), undefined, "a LID");
    assert.equal(personOf(links, peer("telegram", "+31612345678")), undefined, "a name that looks like one");
  });
  it("an id identifies a person on its own channel only, letter for letter", () => {
    assert.equal(personOf(links, peer("discord", "123")), "alice");
    assert.equal(personOf(links, peer("discord", "456")), "alice");
    assert.equal(personOf(links, peer("slack", "123")), undefined);
    assert.equal(personOf(links, peer("discord", "1234")), undefined);
    assert.equal(personOf(links, peer("signal", "a:b")), "bob");
    assert.equal(personOf(links, peer("signal", "A:b")), undefined);
  });
  it("a link that cannot match anyone is reported", () => {
    const { people, problems } = compileLinks({ "a:b": ["discord:1"], "": [], carol: ["31612345678", "nobody1", "+12", ":x", "discord:"] });
    assert.deepEqual(
      people.map(({ name, phones, ids }) => [name, phones.size, ids.size]),
      [["carol", 0, 0]],
    );
    assert.equal(problems.length, 7);
  });

  const name = fc.oneof(
    fc.constantFrom("alice", "bob", "discord:alice", "discord:discord:alice", "+31612345678", "123", "signal:alice"),
    fc.string({ minLength: 1, maxLength: 6 }),
  );
  const anyPeer: fc.Arbitrary<Peer> = fc.record(
    { channel: fc.constantFrom("discord", "signal"), id: name, phone: fc.constantFrom("+31612345678", "31612345678", "4917012345") },
    { requiredKeys: ["channel", "id"] },
  );
  const anyLinks = fc
    .dictionary(
      name,
      fc.array(
        fc.oneof(
          name,
          anyPeer.map(({ channel, id }) => `${channel}:${id}`),
          fc.constant("+31612345678"),
        ),
        { maxLength: 3 },
      ),
      { maxKeys: 4 },
    )
    .map(compileLinks);
  it("two peers have one session only when they are one person (or one number)", () => {
    const scopes: DmScope[] = ["per-peer", "per-channel-peer", "per-account-channel-peer"];
    fc.assert(
      fc.property(anyLinks, anyPeer, anyPeer, fc.constantFrom(...scopes), (some, left, right, dmScope) => {
        fc.pre(isKeyText(left.id) && isKeyText(right.id));
        const key = (who: Peer): string => {
          const { channel, ...peerOf } = who;
          const route = routeInbound({ channel, accountId: "default", peer: { kind: "dm", ...peerOf } }, config({ dmScope, links: some }));
          return route.ok ? route.key : assert.fail(JSON.stringify(route));
        };
        const [a, b] = [personOf(some, left), personOf(some, right)];
        const samePerson = a !== undefined && a === b;
        const sameNumber =
          a === undefined &&
          b === undefined &&
          left.phone !== undefined &&
          right.phone !== undefined &&
          e164(left.phone, "platform") === e164(right.phone, "platform");
        const sameId = left.channel === right.channel && left.id === right.id;
        const sameChannel = left.channel === right.channel;
        if (key(left) === key(right)) assert.ok(samePerson || sameId || (sameNumber && dmScope === "per-peer"));
        if (samePerson && (sameChannel || dmScope === "per-peer")) assert.equal(key(left), key(right));
        assert.equal(peerName(some, left, true), peerName(some, { ...left }, true));
      }),
      { numRuns: 20_000 },
    );
  });
});

describe("[P3.1] sessions of direct messages by dmScope", () => {
  const links = compileLinks({ alice: ["discord:123"] });
  const key = (dmScope: DmScope, origin: Origin): string => {
    const route = routeInbound(origin, config({ dmScope, links, bindings: [binding("work", { channel: "signal" })] }));
    return route.ok ? route.key : assert.fail(JSON.stringify(route));
  };
  for (const [scope, expected, stranger] of [
    ["main", "agent:main:main", "agent:main:main"],
    ["per-peer", "agent:main:dm:alice", "agent:main:dm:discord%3A9"],
    ["per-channel-peer", "agent:main:discord:dm:alice", "agent:main:discord:dm:9"],
    ["per-account-channel-peer", "agent:main:discord:bot:dm:alice", "agent:main:discord:bot:dm:9"],
  ] as const)
    it(scope, () => {
      assert.equal(key(scope, from({ accountId: "Bot" })), expected);
      assert.equal(key(scope, from({ accountId: "Bot" }, { id: "9" })), stranger);
    });
  it("groups, channels and threads have sessions of their own in every scope, and the binding's agent answers", () => {
    assert.equal(key("main", from({ channel: "Signal" }, { kind: "group", id: "a:b" })), "agent:work:signal:group:a%3Ab");
  });
  it("a peer without an id gets no session", () => {
    const route = routeInbound(from({}, { id: "" }), config());
    assert.ok(!route.ok && route.problem === "bad-key");
  });
});

describe("[P3.1] [S7] who a peer is", () => {
  const links = compileLinks({ Ann: ["+31612345678", "Discord:42"], Bob: ["whatsapp:x:y"] });
  const person = (peer: Partial<Peer>): string | undefined => personOf(links, { channel: "discord", id: "7", ...peer });
  it("the one whose number or exact id is linked, and no one else", () => {
    assert.deepEqual(links.problems, []);
    assert.deepEqual(
      [person({ id: "42" }), person({ phone: "31612345678" }), person({ channel: "whatsapp", id: "x:y" })],
      ["Ann", "Ann", "Bob"],
    );
    for (const stranger of [
      {},
      { phone: "31612345679" },
      { phone: "x" },
      { channel: "whatsapp", id: "42" },
      { channel: "whatsapp", id: "x" },
    ])
      assert.equal(person(stranger), undefined, JSON.stringify(stranger));
  });
  it("a link that is neither a number nor an id is named, and links no one", () => {
    for (const entry of ["+123", "anna", "discord:", ":42", "+31612345678x:1", " discord:42"]) {
      const { people, problems } = compileLinks({ Ann: [entry] });
      assert.deepEqual([people[0]?.ids.size, people[0]?.phones.size, problems.length], [0, 0, 1], entry);
    }
    for (const name of [" ", "a:b", "a+b", "\ud800"]) assert.equal(compileLinks({ [name]: [] }).people.length, 0, name);
  });
  it("a binding to a number matches that number only, however it is written", () => {
    const to = (id: string, phone?: string): boolean =>
      matches(binding("work", { peer: { kind: "dm", id } }), from({}, phone === undefined ? {} : { phone }));
    assert.deepEqual(
      [
        to("+31 6 1234 5678", "31612345678"),
        to("+31612345678", "31612345679"),
        to("31612345678", "31612345678"),
        to("+31612345678"),
        to("x"),
      ],
      [true, false, false, false, false],
    );
  });
  it("text of half a character, or none, is no part of a key", () => {
    assert.deepEqual(["a", "ä:%", "", "\ud800", "a\udc00"].map(isKeyText), [true, true, false, false, false]);
  });
});
