/** Packs: tools, agents and topics for one kind of business, which the owner turns on (gateway/spec/packs.md). */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { PacksPort, PackToolPort } from "../../ports/packs.ts";

export const packsFeature: FeatureDefinition<PacksPort, { readonly packsRpc: PackToolPort }> = {
  name: "packs",
  create({ packs }) {
    return {
      offers: { packsRpc: packs },
      runContext() {
        const packTools = packs.entries();
        return packTools.length === 0 ? {} : { packTools };
      },
      contextVersion: () => packs.version(),
    };
  },
};
