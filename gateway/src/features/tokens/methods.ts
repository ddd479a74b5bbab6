/** `tokens.*`: making, listing and ending tokens. A token that ends takes its connections with it, at once. */
import { succeed } from "../../kernel/outcome.ts";
import type { Handler, Handlers } from "../../app/services.ts";

const create: Handler<"tokens.create"> = async (services, { now }, params) => {
  const made = await services.tokens.create(params, now);
  services.alarms.arm();
  return made;
};

const list: Handler<"tokens.list"> = (services) => {
  const tokens = [...services.tokens.list()];
  return succeed({ tokens, count: tokens.length });
};

const revoke: Handler<"tokens.revoke"> = (services, { now }, { tokenId }) => {
  const revoked = services.tokens.revoke(tokenId, now);
  if (!revoked.ok) return revoked;
  return succeed({ ok: true, tokenId, closed: services.closeToken(tokenId, "the token was revoked") });
};

export const tokenMethods = { "tokens.create": create, "tokens.list": list, "tokens.revoke": revoke } as const satisfies Handlers;
