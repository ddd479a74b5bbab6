/** What every method that names a conversation does first. */
import type { Result } from "../../ports.ts";
import { fail, succeed } from "../outcome.ts";
import { canonicalKey, type SessionAddress } from "../routing/session-keys.ts";
import type { Services } from "../services.ts";

export interface Conversation {
  readonly key: string;
  readonly address: SessionAddress;
}

export function conversation(services: Pick<Services, "config">, raw: string): Result<Conversation> {
  const outcome = canonicalKey(raw, services.config.mainKey());
  return outcome.ok
    ? succeed({ key: outcome.key, address: outcome.address })
    : fail("session.bad_key", `This is not a session key: ${outcome.problem}.`);
}

/** A conversation that exists: somebody has written in it. */
export function existing(services: Pick<Services, "config" | "sessions">, raw: string): Result<Conversation> {
  const found = conversation(services, raw);
  if (!found.ok || services.sessions.find(found.value.key) !== undefined) return found;
  return fail("session.not_found", `There is no session ${found.value.key}. It begins with its first message.`);
}
