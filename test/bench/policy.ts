/** How long the gateway takes to decide about a call. The decision is pure, so it is measured without a gateway. */
import { decide, type PolicyContext, policyOf } from "../../gateway/src/policy/decide.ts";
import { loadPolicyParts } from "../../gateway/src/policy/load.ts";
import type { Grant } from "../../gateway/src/ports/grants.ts";
import type { PolicyCall } from "../../gateway/src/ports/policy.ts";
import { median } from "./process.ts";

const RULES = 20;
const GRANTS = 20;
/** Decisions of one sample: a single one is shorter than the clock can tell. */
const BATCH = 200;

const bash = (command: string, more: object = {}): PolicyCall => ({
  name: "laptop__Bash",
  tool: "Bash",
  target: { kind: "node", nodeId: "laptop" },
  policyClass: "exec",
  args: { command, ...more },
  sandbox: "workspace",
});
const CALLS: readonly PolicyCall[] = [
  bash("npm test"),
  bash("git add -A && git commit -m 'a message of some words' && git log --oneline | head -5"),
  bash("for f in *.ts; do wc -l $f; done | sort -n | tail -20"),
  bash("curl -s https://example.org/", { sandbox: "workspace+net", hosts: ["example.org"] }),
  bash("make install", { sandbox: "off" }),
  {
    name: "laptop__Write",
    tool: "Write",
    target: { kind: "node", nodeId: "laptop" },
    policyClass: "write_files",
    args: { path: "src/main.ts", content: "x".repeat(4096) },
    sandbox: "workspace",
  },
];

/** Microseconds of one decision, with many rules and grants of which none decides. */
export async function decisionUs(samples: number): Promise<number> {
  const engine = await loadPolicyParts();
  // Half of them name a command, half have a pattern for its text.
  const rules = Array.from({ length: RULES }, (_, at) => ({
    id: `r${at}`,
    tool: "*__Bash",
    decision: at % 2 === 0 ? ("allow" as const) : ("deny" as const),
    when: [
      at % 2 === 0
        ? { path: "command", op: "equals" as const, value: [`program${at}`, "run"] }
        : { path: "command", op: "regex" as const, value: `^program${at} [a-z]+$` },
    ],
  }));
  const grants = Array.from(
    { length: GRANTS },
    (_, at): Grant => ({
      id: `g${at}`,
      scope: {
        agentId: "main",
        tool: "Bash",
        nodeId: "laptop",
        what: { kind: "commands", sandbox: "workspace", folder: "", commands: [{ program: `tool${at}` }] },
      },
      expiresAt: Number.MAX_SAFE_INTEGER,
    }),
  );
  const context: PolicyContext = {
    policy: policyOf({ rules }, engine),
    mode: "auto",
    isOwners: true,
    taint: { label: "world", source: "a page" },
    granted: { grants, agentId: "main", sandbox: "workspace" },
  };
  const found: number[] = [];
  for (let count = -20; count < samples; count++) {
    const from = performance.now();
    for (let at = 0; at < BATCH; at++) {
      const call = CALLS[at % CALLS.length];
      if (call !== undefined) decide(call, context);
    }
    if (count >= 0) found.push(((performance.now() - from) * 1000) / BATCH);
  }
  return median(found);
}
