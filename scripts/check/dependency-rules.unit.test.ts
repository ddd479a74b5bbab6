import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { blank, importsOf, packWordFindings, rustFindings, typescriptFindings, type RustPackage } from "./dependency-rules.ts";

const rulesOf = (file: string, text: string): string[] => [...new Set(typescriptFindings(new Map([[file, text]])).map(({ rule }) => rule))];
const imports = (file: string, specifier: string, type = ""): string[] => rulesOf(file, `import ${type}{ x } from "${specifier}";\n`);

describe("rules of dependency", () => {
  it("each rule finds its breach", () => {
    assert.deepEqual(imports("protocol/src/a.ts", "../../gateway/src/b.ts"), ["1"]);
    assert.deepEqual(imports("channels/discord/worker.ts", "../../gateway/src/env.ts", "type "), ["2"]);
    assert.deepEqual(imports("channels/discord/worker.ts", "../whatsapp/socket.ts"), ["2"]);
    assert.deepEqual(imports("gateway/src/session/machine/reduce.ts", "../store/state.ts"), ["3"]);
    assert.deepEqual(imports("gateway/src/tools/tool.ts", "../platform/clock.ts"), ["4"]);
    assert.deepEqual(imports("gateway/src/models/client.ts", "cloudflare:workers"), ["4"]);
    assert.deepEqual(imports("gateway/src/session/effects/deliver.ts", "../../features/nodes/links.ts", "type "), ["5"]);
    assert.deepEqual(imports("gateway/src/session/driver.ts", "../kernel/dispatcher.ts", "type "), ["5"]);
    assert.deepEqual(imports("gateway/src/kernel/dispatcher.ts", "../features/nodes/index.ts", "type "), ["5"]);
    assert.deepEqual(imports("gateway/src/kernel/dispatcher.ts", "../session/driver.ts", "type "), ["5"]);
    assert.deepEqual(imports("gateway/src/features/nodes/links.ts", "../sessions/store.ts", "type "), ["5"]);
    assert.deepEqual(imports("gateway/src/features/nodes/links.ts", "../../session/driver.ts", "type "), ["5"]);
    assert.deepEqual(imports("gateway/src/features/nodes/links.ts", "../../app/features.ts", "type "), ["5"]);
    assert.deepEqual(imports("gateway/src/storage/keys.ts", "../kernel/naming.ts", "type "), ["5"]);
    assert.deepEqual(imports("gateway/src/tools/arguments.ts", "../features/workspace/tools.ts", "type "), ["5"]);
    assert.deepEqual(imports("gateway/src/schedule/read.ts", "../features/schedule/job.ts", "type "), ["5"]);
    assert.deepEqual(rulesOf("gateway/src/features/nodes/index.ts", "export const create = (ports: KernelPorts) => ports;\n"), ["6"]);
    assert.deepEqual(imports("gateway/src/features/nodes/links.ts", "../../platform/sql.ts"), ["4"]);
    assert.deepEqual(imports("gateway/src/kernel/handshake.ts", "../platform/ids.ts"), ["4"]);
    assert.deepEqual(imports("gateway/src/kernel/connections.ts", "../platform/sql.ts"), ["4"]);
    assert.deepEqual(imports("gateway/src/app/worker.ts", "../../packs/commerce/index.ts"), ["7"]);
    assert.deepEqual(imports("gateway/src/features/packs/packs.ts", "../../../packs/index.ts"), ["7"]);
    assert.deepEqual(imports("gateway/packs/commerce/orders.ts", "../success/index.ts"), ["7"]);
    assert.deepEqual(imports("gateway/packs/commerce/orders.ts", "../../src/features/events/index.ts", "type "), ["7"]);
    assert.deepEqual(imports("gateway/src/app/worker.ts", "../../../protocol/src/chat.ts"), ["9"]);
    assert.deepEqual(imports("gateway/src/app/worker.ts", "./env"), ["imports"]);
  });

  it("allowed imports pass", () => {
    assert.deepEqual(imports("channels/discord/worker.ts", "../../protocol/gen/types.ts", "type "), []);
    assert.deepEqual(imports("channels/discord/worker.ts", "../kit/inbox.ts"), []);
    assert.deepEqual(imports("gateway/src/session/machine/reduce.ts", "./phase/idle.ts"), []);
    assert.deepEqual(imports("gateway/src/session/machine/reduce.ts", "../store/state.ts", "type "), []);
    assert.deepEqual(imports("gateway/src/app/session-do.ts", "../platform/sql.ts"), []);
    assert.deepEqual(imports("gateway/src/features/nodes/store.ts", "../../platform/sql.ts"), []);
    assert.deepEqual(imports("gateway/src/features/skills/pin-store.ts", "../../platform/sql.ts"), []);
    assert.deepEqual(imports("gateway/src/kernel/connections.ts", "../platform/sockets.ts"), []);
    assert.deepEqual(imports("gateway/src/features/nodes/links.ts", "./store.ts"), []);
    assert.deepEqual(imports("gateway/src/features/nodes/links.ts", "../../kernel/naming.ts"), []);
    assert.deepEqual(imports("gateway/src/app/features.ts", "../features/nodes/index.ts"), []);
    assert.deepEqual(imports("gateway/src/app/compose.ts", "../../packs/index.ts"), []);
    assert.deepEqual(imports("gateway/packs/index.ts", "./commerce/index.ts"), []);
    assert.deepEqual(imports("gateway/packs/commerce/index.ts", "../../src/packs/pack.ts"), []);
    assert.deepEqual(rulesOf("gateway/src/features/nodes/index.ts", 'type Ports = Pick<KernelPorts, "now">;\n'), []);
    assert.deepEqual(imports("gateway/src/session/store/log.ts", "../../platform/sql.ts", "type "), []);
    assert.deepEqual(imports("gateway/test/session/a.test.ts", "../../src/platform/sql.ts"), []);
  });

  it("[PK1] a word of a business, and a name of a pack, in the core is a breach", () => {
    const found = (file: string, text: string): number =>
      packWordFindings(
        new Map([
          ["gateway/packs/farm/farm.lazy.ts", 'tool({ name: "farm_fields" });\n'],
          ["gateway/packs/farm/agents/harvest-plan/agent.yaml", ""],
          [file, text],
        ]),
      ).length;
    assert.equal(found("gateway/src/tools/tool.ts", "// farm_fields reads fields\n"), 1);
    assert.equal(found("cli/src/exit.rs", 'let agent = "harvest-plan";\n'), 1);
    assert.equal(found("protocol/src/errors.ts", "The Shopify shop\n"), 1);
    assert.equal(found("gateway/src/tools/tool.ts", "a farm has fields\n"), 0);
    assert.equal(found("gateway/packs/shop/index.ts", "a refund\n"), 0);
    assert.equal(found("gateway/src/tools/tool.unit.test.ts", "a refund\n"), 0);
  });

  it("rule 3: pure code does not read the clock, use randomness, wait or read the environment", () => {
    for (const code of [
      "await x;",
      "Date.now()",
      "new Date()",
      "Math.random()",
      "crypto.randomUUID()",
      "fetch(url)",
      "process.env.X",
      `\`${"$"}{Date.now()}\``,
    ]) {
      assert.deepEqual(rulesOf("gateway/src/session/machine/a.ts", `const a = () => ${code}`), ["3"], code);
      assert.deepEqual(rulesOf("channels/discord/map-inbound.ts", `const a = () => ${code}`), ["3"], code);
      assert.deepEqual(rulesOf("gateway/src/session/store/a.ts", `const a = () => ${code}`), [], code);
    }
    assert.deepEqual(rulesOf("gateway/src/features/channels/access.ts", "/** Access. PURE. */\nconst a = () => Date.now()"), ["3"]);
    assert.deepEqual(rulesOf("gateway/src/features/channels/access.ts", "/** Access. */\nconst a = () => Date.now()"), []);
    assert.deepEqual(rulesOf("test/fakes/wire.ts", "/** A wire. PURE. */\nconst a = () => Date.now()"), ["3"]);
    const importing = (head: string): string[] => {
      const sources = new Map([
        ["gateway/src/features/channels/access.ts", '/** Access. PURE. */\nimport { x } from "./other.ts";\n'],
        ["gateway/src/features/channels/other.ts", `/** ${head} */\nexport const x = 1;\n`],
      ]);
      return typescriptFindings(sources).map(({ rule }) => rule);
    };
    assert.deepEqual([importing("Data."), importing("Data. PURE.")], [["3"], []]);
    for (const code of ["new Date(now)", "// Date.now()", "/* await */ 1", '"await Math.random()"']) {
      assert.deepEqual(rulesOf("gateway/src/session/machine/a.ts", `const a = () => ${code}`), [], code);
    }
  });

  it("rule 3: Pure in a head, which the check would not read as PURE, is a breach", () => {
    assert.deepEqual(rulesOf("gateway/src/session/view.ts", "/** What the model is shown. Pure. */\nconst a = 1;"), ["3"]);
    assert.deepEqual(rulesOf("test/fakes/wire.ts", "/**\n * A wire. Pure; for fakes only.\n */\n"), ["3"]);
    assert.deepEqual(rulesOf("gateway/src/session/view.ts", "/** What the model is shown. PURE. */\n/** Pure. */\nconst a = 1;"), []);
    assert.deepEqual(rulesOf("gateway/src/a.unit.test.ts", "/** Tests of the pure parts. */\nconst a = 1;"), []);
  });

  it("finds imports of every form, with their line", () => {
    const text = `// import { no } from "comment";\nimport type { A } from "./a.ts";\nimport {\n  b,\n} from "../b.ts";\nimport "./side.ts";\nexport * from "./c.ts";\nconst d = await import("./d.ts");\n`;
    assert.deepEqual(
      importsOf("x/y/z.ts", text).map(({ target, typeOnly, line }) => [target, typeOnly, line]),
      [
        ["x/y/a.ts", true, 2],
        ["x/b.ts", false, 5],
        ["x/y/side.ts", false, 6],
        ["x/y/c.ts", false, 7],
        ["x/y/d.ts", false, 8],
      ],
    );
  });

  it("blanking keeps line numbers", () => {
    assert.equal(blank('a /* 1\n2 */ "b//c" // d', { comments: true, strings: false }), 'a     \n     "b//c"     ');
  });

  it("rule 8: the order of crates, and a machine without tokio and clock", () => {
    const packages: RustPackage[] = [
      { name: "gsv-protocol", dependencies: ["serde"] },
      { name: "gsv-link", dependencies: ["gsv-protocol", "tokio"] },
      { name: "gsv-tools", dependencies: ["gsv-protocol"] },
      { name: "gsv-node", dependencies: ["gsv-link", "gsv-tools"] },
      { name: "gsv", dependencies: ["gsv-node", "anyhow"] },
    ];
    assert.deepEqual(rustFindings(packages, new Map()), []);
    const bad = (name: string, dependency: string): number =>
      rustFindings(
        packages.map((it) => (it.name === name ? { name, dependencies: [dependency] } : it)),
        new Map(),
      ).length;
    assert.equal(bad("gsv-protocol", "gsv-link"), 1);
    assert.equal(bad("gsv-tools", "gsv-link"), 1);
    assert.equal(bad("gsv-link", "anyhow"), 1);
    assert.equal(rustFindings([{ name: "gsv-new", dependencies: [] }], new Map()).length, 1);
    const machine = (code: string): number => rustFindings([], new Map([["crates/gsv-link/src/machine/mod.rs", code]])).length;
    assert.deepEqual(
      [machine("use tokio::time;"), machine("let t = Instant::now();"), machine("// tokio\nfn f(now: Instant) {}")],
      [1, 1, 0],
    );
  });
});
