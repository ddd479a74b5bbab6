/** Money and tokens: the ledger that every model call reserves from, and what it shows (gateway rules SP1-SP8). */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { SpendAnswer, SpendAsk, SpendPort } from "../../ports/spend.ts";
import { succeed } from "../../ports/result.ts";
import { Ledger, type LedgerPorts } from "./ledger.ts";
import { SPEND_MIGRATIONS } from "./ledger-store.ts";

/** What sessions may call. */
export interface SpendRpc {
  reserve(ask: SpendAsk): Promise<SpendAnswer>;
}
const USUAL_DAYS = 30;

export const spendFeature: FeatureDefinition<LedgerPorts, SpendPort & { readonly spendRpc: SpendRpc }> = {
  name: "spend",
  migrations: SPEND_MIGRATIONS,
  create(ports) {
    const ledger = new Ledger(ports);
    return {
      offers: {
        spendFull: (agentId) => ledger.full(agentId),
        ownCall: (call) => ledger.ownCall(call),
        spendRpc: { reserve: (ask) => ledger.reserve(ask) },
      },
      methods: {
        "usage.get": async (_caller, { by, days }) => succeed(await ledger.usage(by ?? "day", days ?? USUAL_DAYS)),
      },
      sessionSpent: (session, spent) => ledger.sessionSpent(session, spent),
      sessionGone: ({ key }) => ledger.sessionGone(key),
      alarms: [
        { name: "spend_grants", next: () => ledger.nextEnd(), run: (now) => ledger.endGrants(now) },
        { name: "spend_notices", next: () => ledger.nextTelling(), run: () => ledger.tellAll() },
      ],
    };
  },
};
