/** Reads the audit log. The kernel writes and prunes it. */
import { succeed } from "../../ports/result.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";

export const auditFeature: FeatureDefinition<Pick<KernelPorts, "audit">, object> = {
  name: "audit",
  create: ({ audit }) => ({
    offers: {},
    methods: {
      "audit.list": async (_caller, params) => {
        const { entries, count, intact } = await audit.list(params.limit ?? LIMITS.pageItems, params.beforeSeq, params.action);
        return succeed({ entries: [...entries], count, intact });
      },
    },
  }),
};
