import assert from "node:assert/strict";
import { test } from "node:test";
import type { GsvError } from "../ports/result.ts";
import { agentChoice, type ModelChoice, withAlternative } from "./choice.ts";

const NO_KEY: GsvError = {
  reason: "model.not_configured",
  message: "No key is set for Anthropic.",
  hint: "Run `gsv config set apiKeys.anthropic -`.",
};
const hint = (choice: ModelChoice, error = NO_KEY): string | undefined => withAlternative(error, choice).hint;

test("[R6] [P10] a model without its key: one next step, with the way back of the place whose model counts", () => {
  const list = [{ id: "main" }, { id: "work" }];
  for (const [choice, other] of [
    [{ kind: "message" }, "send the message again without its model"],
    [{ kind: "session" }, "go back to the configured model: `/model default`"],
    [agentChoice("work", list), "let the agent work use the configured model: `gsv config unset agents.list.1.model`"],
    [{ kind: "tier", setting: "model.tiers.sub" }, "use the configured model for this tier: `gsv config unset model.tiers.sub`"],
    [{ kind: "fallback" }, "take the model out of `model.fallbacks`: `gsv config edit`"],
    [{ kind: "config" }, "use the built-in demo model: `gsv config set model.provider demo`"],
  ] as const)
    assert.equal(hint(choice), `Run \`gsv config set apiKeys.anthropic -\`, or ${other}.`);
});

test("[R6] an agent of a pack and an error of another kind keep their hint", () => {
  assert.equal(hint(agentChoice("shop", [{ id: "main" }])), NO_KEY.hint);
  assert.equal(hint({ kind: "config" }, { ...NO_KEY, reason: "model.auth" }), NO_KEY.hint);
});

test("[RT2] the sender of a task is not told to send a message or a command without its model", () => {
  for (const kind of ["message", "session"] as const) assert.equal(withAlternative(NO_KEY, { kind }).taskHint, NO_KEY.hint);
  assert.equal(withAlternative(NO_KEY, { kind: "config" }).taskHint, undefined);
});
