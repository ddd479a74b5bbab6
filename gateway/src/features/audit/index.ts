/** Reads the audit log. The kernel writes and prunes it. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { METHODS } from "../../../../protocol/gen/methods.ts";
import { nearest } from "../../../../protocol/runtime/nearest.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type Failure, succeed } from "../../ports/result.ts";

/** Actions that a hint lists. */
const MAX_NAMED = 20;

const unknownAction = (action: string, logged: readonly string[], meant: string | undefined): Failure =>
  fail(
    "protocol.invalid_params",
    `No entry has the action ${action}.`,
    meant === undefined ? `The log has entries of ${logged.slice(0, MAX_NAMED).join(", ") || "no action yet"}.` : `Did you mean ${meant}?`,
  );

export const auditFeature: FeatureDefinition<Pick<KernelPorts, "audit">, object> = {
  name: "audit",
  create: ({ audit }) => ({
    offers: {},
    methods: {
      "audit.list": async (_caller, params) => {
        const { action } = params;
        if (action !== undefined) {
          const logged = audit.actions();
          const known = [...new Set([...logged, ...Object.keys(METHODS)])];
          if (!known.includes(action)) return unknownAction(action, logged, nearest(action, known));
        }
        const { entries, count, intact } = await audit.list(params.limit ?? LIMITS.pageItems, params.beforeSeq, params.action);
        return succeed({ entries: [...entries], count, intact });
      },
    },
  }),
};
