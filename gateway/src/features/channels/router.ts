/**
 * Finds the session of a platform's message, or creates it (gateway rules CH9-CH11): as configured, and never a session that belongs
 * to another person.
 */
import type { ChannelInbound, DmScope, PairRole } from "../../../../protocol/gen/types.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { SessionIdentity } from "../../ports/session.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import { fail } from "../../kernel/outcome.ts";
import type { Config } from "../../kernel/config/store.ts";
import type { NamedSession, SessionDirectory } from "../../ports/sessions.ts";
import { routeInbound } from "../../kernel/routing/bindings.ts";
import { compileLinks } from "../../kernel/routing/identity-links.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";

/** The session that a message goes to. */
export interface Destination {
  readonly identity: SessionIdentity;
  readonly key: string;
  readonly isOwner: boolean;
}
const NOT_YOURS =
  "This message would go to a conversation of another person. Ask the owner of this assistant to give you your own, by changing `session.dmScope` or `session.identityLinks`.";

export class ChannelRouter {
  readonly #ports: { readonly config: Config; readonly sessions: SessionDirectory; readonly now: () => number };
  constructor(ports: { readonly config: Config; readonly sessions: SessionDirectory; readonly now: () => number }) {
    this.#ports = ports;
  }

  /**
   * The session of a message. The owner and other people never share a session, whatever the configuration says. When the session that
   * `session.dmScope` names belongs to another person, the owner gets the main session, and others one by account and their own id.
   */
  destinationOf(ref: ChannelRef, inbound: ChannelInbound, role: PairRole): Result<Destination> {
    const { config, sessions, now } = this.#ports;
    const isOwner = role === "owner" && inbound.peer.kind === "dm";
    const scope = config.effective().session.dmScope ?? "main";
    const apart: DmScope = "per-account-channel-peer";
    const tries: readonly (readonly [DmScope, linked: boolean])[] = [
      [scope === "main" && !isOwner ? apart : scope, true],
      isOwner ? ["main", true] : [apart, false],
    ];
    for (const [dmScope, linked] of tries) {
      const route = this.#route(ref, inbound, dmScope, linked);
      if (!route.ok) return route;
      const record = sessions.find(route.value.key);
      // A new session belongs to its first sender, unless its name makes it the owner's.
      const ownersSession = sessions.isOwners(route.value);
      if (record === undefined ? isOwner || !ownersSession : ownersSession === isOwner) {
        const identity = sessions.takeUp(route.value, now(), isOwner);
        return succeed({ key: identity.key, isOwner, identity });
      }
    }
    return fail("session.bad_key", NOT_YOURS);
  }
  #route(ref: ChannelRef, inbound: ChannelInbound, dmScope: DmScope, linked: boolean): Result<NamedSession> {
    const { config } = this.#ports;
    const { session, agents } = config.effective();
    const route = routeInbound(
      {
        channel: ref.channel,
        accountId: ref.accountId,
        peer: {
          kind: inbound.peer.kind,
          id: inbound.peer.id,
          ...(inbound.senderIds?.phone === undefined || inbound.peer.kind !== "dm" ? {} : { phone: inbound.senderIds.phone }),
        },
      },
      {
        bindings: agents?.bindings ?? [],
        agents: new Set(config.agents().map(({ id }) => id)),
        defaultAgent: config.defaultAgentId(),
        dmScope,
        mainKey: config.mainKey(),
        links: compileLinks(linked ? session.identityLinks : undefined),
      },
    );
    if (!route.ok) {
      return fail(
        "session.bad_key",
        route.problem === "unknown-agent"
          ? `A binding names the agent ${route.agentId}, which does not exist. Fix \`agents.bindings\`.`
          : `This is not the key of a conversation: ${route.why}.`,
      );
    }
    return succeed({ key: route.key, address: route.address });
  }

  /** The session that a retried message was claimed for; undefined: the sender may not use it any more. */
  claimed(claimed: string, current: Destination): Destination | undefined {
    if (claimed === current.key) return current;
    const { config, sessions, now } = this.#ports;
    const named = canonicalKey(claimed, config.mainKey());
    if (!named.ok) return undefined;
    const identity = sessions.takeUp(named, now());
    return identity.isOwnersSession === current.isOwner ? { key: claimed, isOwner: current.isOwner, identity } : undefined;
  }
}
