import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { adviceFindings, isSetting } from "./advice.ts";

const CONTRACT = { root: ["ref", "GsvConfig"], otherNames: new Set(["agents.create"]) } as const;
const found = (text: string, file = "gateway/src/x.ts"): string[] =>
  adviceFindings(new Map([[file, text]]), CONTRACT).map(({ message, line }) => `${line} ${message}`);

describe("[F1] settings that texts name", () => {
  it("a path may go through lists and maps, and a part of it may stand for a name", () => {
    const inCode = ["channels.$", "{name}.dmPolicy"].join("");
    for (const path of ["model", "model.id", "apiKeys.anthropic", "apiKeys.PROVIDER", "channels.*.dmPolicy", inCode])
      assert.ok(isSetting(path, CONTRACT), path);
    for (const path of ["models", "model.name", "model.id.more", "channels.whatsapp.policy", "toString", "model.constructor"])
      assert.ok(!isSetting(path, CONTRACT), path);
  });
  it("a command and a name in backticks are findings when there is no such setting", () => {
    assert.deepEqual(found("one\nRun `gsv config set model.name x`."), ["2 There is no setting model.name."]);
    assert.deepEqual(found("gsv config get session.scope"), ["1 There is no setting session.scope."]);
    assert.deepEqual(found("Set `channels.discord.policy`."), ["1 There is no setting channels.discord.policy."]);
    assert.deepEqual(found("Set `limits.dayUsd`.", "README.md"), ["1 There is no setting limits.dayUsd."]);
  });
  it("other names, placeholders, tests and generated files are none", () => {
    const inCode = ["$", "{path}"].join("");
    assert.deepEqual(
      found(`\`agents.create\`, \`x.y\`, \`gsv config get PATH\`, \`gsv config set ${inCode} 1\`, \`gsv config set {path} 1\``),
      [],
    );
    assert.deepEqual(found("Set `model.name`.", "gateway/src/x.unit.test.ts"), []);
    assert.deepEqual(found("Set `model.name`.", "protocol/gen/types.ts"), []);
  });
});
