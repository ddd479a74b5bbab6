/** Tokens: create, list and revoke them. Revoking a token closes its connections immediately. The kernel owns the table. */
import { succeed } from "../../ports/result.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";

type Ports = Pick<KernelPorts, "tokens" | "arm" | "closeToken" | "connections" | "now">;

export const tokensFeature: FeatureDefinition<Ports, object> = {
  name: "tokens",
  create: (ports) => ({
    offers: {},
    methods: tokenMethods(ports),
    gone: ({ principal }) => ports.tokens.recordUse(principal.tokenId, ports.now()),
  }),
};

const tokenMethods = ({ tokens, arm, closeToken, connections }: Ports): Handlers => ({
  "tokens.create": async ({ now }, params) => {
    const made = await tokens.create(params, now);
    arm();
    return made;
  },
  "tokens.list": () => {
    const connected = new Set(connections.all().map(({ principal }) => principal.tokenId));
    const list = tokens.list().map((entry) => (connected.has(entry.tokenId) ? { ...entry, connected: true as const } : entry));
    return succeed({ tokens: list, count: list.length });
  },
  "tokens.revoke": ({ now }, { tokenId }) => {
    const revoked = tokens.revoke(tokenId, now);
    if (!revoked.ok) return revoked;
    return succeed({ ok: true, tokenId, closed: closeToken(tokenId, "the token was revoked") });
  },
});
