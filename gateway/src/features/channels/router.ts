/**
 * Which conversation a platform's message belongs to (gateway rules CH9-CH11): routed as configured, and never one that is somebody
 * else's. Makes it where it is not there yet.
 */
import type { ChannelInbound, DmScope, PairRole } from "../../../../protocol/gen/types.ts";
import type { Result } from "../../ports/result.ts";
import type { SessionIdentity } from "../../ports/session.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import type { Config } from "../../kernel/config/store.ts";
import type { NamedSession, SessionDirectory } from "../../ports/sessions.ts";
import { routeInbound } from "../../kernel/routing/bindings.ts";
import { compileLinks } from "../../kernel/routing/identity-links.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";

export interface Place {
  readonly identity: SessionIdentity;
  readonly key: string;
  readonly isOwner: boolean;
}
const NOT_YOURS =
  "The conversation that this would go to is somebody else's. Ask the owner of this assistant: they can give you another one by changing `session.dmScope` or `session.identityLinks`.";

export class Places {
  readonly #ports: { readonly config: Config; readonly sessions: SessionDirectory; readonly now: () => number };
  constructor(ports: { readonly config: Config; readonly sessions: SessionDirectory; readonly now: () => number }) {
    this.#ports = ports;
  }

  /**
   * The conversation of a message (gateway rules CH9-CH11). The owner and others never share one, whatever is configured or was: where
   * the one that `session.dmScope` names is somebody else's already, the owner talks on in the main one, others in one by account and their own id.
   */
  of(ref: ChannelRef, inbound: ChannelInbound, role: PairRole): Result<Place> {
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
      // What nobody has used belongs to whoever comes first, but for the owner's own by name.
      const whose = sessions.isOwners(route.value);
      if (record === undefined ? isOwner || !whose : whose === isOwner) {
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
          ? `A binding names the agent ${route.agentId}, which does not exist. Mend \`agents.bindings\`.`
          : `There can be no conversation with this name: ${route.why}.`,
      );
    }
    return succeed({ key: route.key, address: route.address });
  }

  /** Of a message that was on its way before; undefined: that is no longer for whoever wrote it. */
  claimed(claimed: string, place: Place): Place | undefined {
    if (claimed === place.key) return place;
    const { config, sessions, now } = this.#ports;
    const named = canonicalKey(claimed, config.mainKey());
    if (!named.ok) return undefined;
    const identity = sessions.takeUp(named, now());
    return identity.isOwnersSession === place.isOwner ? { key: claimed, isOwner: place.isOwner, identity } : undefined;
  }
}
