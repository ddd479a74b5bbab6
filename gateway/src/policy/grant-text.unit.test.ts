import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApprovalRule, SandboxProfile } from "../../../protocol/gen/types.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { choiceText, ruleText, scopeText } from "./grant-text.ts";
import { at, bash, native, write } from "./grant-cases.ts";
import { offerOf, scopeOf } from "./grants.ts";

test("[GR1] the text of an answer names the rule that it makes, or the scope of its grant", () => {
  const offer = offerOf(bash("ping db"), at());
  assert.ok(offer);
  const shown = (text: string): string => `<${text}>`;
  assert.equal(
    choiceText("always", offer.scope, offer.always, shown),
    "a rule that allows `<lap__Bash>` where <command is `ping db`>, in the folder of the workspace, in the sandbox of the machine, or without one where it has none, for every agent and in each of your own conversations, in each mode, until you remove it; `gsv approval grants` lists it",
  );
  for (const choice of ["session", "1h", "8h", "30d"] as const)
    assert.equal(choiceText(choice, offer.scope, offer.always, shown), scopeText(offer.scope, shown));
});
test("[GR1] [GR8] the text of a rule names its tool and every condition, in words", () => {
  const text = (when?: ApprovalRule["when"]): string => ruleText({ tool: "*__Bash", ...(when && { when }) }, (shown) => shown);
  const [folder, sandbox] = [", in the folder of the workspace", ", in the sandbox of the machine, or without one where it has none"];
  const nothing = ", which allows nothing, because it names no whole command";
  assert.equal(text(), `\`*__Bash\`${nothing}`);
  assert.equal(
    text([
      { path: "command", op: "equals", value: ["make"] },
      { path: "workdir", op: "equals", value: "web" },
    ]),
    `\`*__Bash\` where command is \`make\` and workdir is "web"${sandbox}`,
  );
  assert.equal(
    ruleText({ tool: "lap__Write" }, (shown) => shown),
    "`lap__Write`",
  );
  assert.equal(
    text([
      { path: "command", op: "equals", value: ["git", "commit", "-m", "a b"] },
      { path: "sandbox", op: "equals", value: "off" },
    ]),
    `\`*__Bash\` where command is \`git commit -m "a b"\` and sandbox is "off"${folder}`,
  );
  assert.equal(text([{ path: "command", op: "startsWith", value: ["rm"] }]), `\`*__Bash\` where command begins with \`rm\`${nothing}`);
  assert.equal(
    text([{ path: "command", op: "equals", value: ["rm", "a` and `b"] }]),
    `\`*__Bash\` where command is \`rm "a\\u0060 and \\u0060b"\`${folder}${sandbox}`,
  );
  assert.equal(
    text([
      { path: "path", op: "regex", value: "^/etc", flags: "i" },
      { path: "to.name", op: "contains", value: ["x"] },
    ]),
    `\`*__Bash\` where path matches the regular expression "^/etc" with the flags i and to.name contains ["x"]${nothing}`,
  );
});
test("[GR1] the text of a scope names everything that limits it", () => {
  const text = (call: PolicyCall, sandbox: SandboxProfile = "off"): string => {
    const scope = scopeOf(call, at(sandbox));
    assert.ok(scope);
    return scopeText(scope, (shown) => shown);
  };
  assert.equal(
    text(bash("git log"), "workspace"),
    "`git log` with any further arguments, in the workspace of lap, in the sandbox workspace, by the agent main",
  );
  assert.equal(
    text(bash("python3 x", { workdir: "a" }), "workspace"),
    "`python3` with any arguments, in the folder a of lap, in the sandbox workspace, by the agent main",
  );
  assert.equal(text(bash("rm 'a b'")), 'exactly `rm "a b"`, in the workspace of lap, without a sandbox, by the agent main');
  assert.equal(text(write("src/a.ts")), "Write of files in the folder src of lap and below, by the agent main");
  assert.equal(text(native("gsv__Message", { to: "x" })), "gsv__Message with to = x and any text and files, by the agent main");
  assert.equal(
    text(native("gsv__Transfer", { source: "laptop:/srv/a", destination: "gsv:b" })),
    "gsv__Transfer with source = laptop:/srv/a, destination = gsv:b, by the agent main",
  );
});
