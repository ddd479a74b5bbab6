/**
 * Routes a message to an agent and a session, by its channel, account and peer (product P3.1). The first matching binding decides; without one the default
 * agent answers. PURE: the configuration is an argument.
 */
import type { AgentBinding, DmScope } from "../../../../protocol/gen/types.ts";
import { type IdentityLinks, type Peer, peerName, phoneOf, e164 } from "./identity-links.ts";
import type { PeerKind } from "../../../../protocol/gen/types.ts";
import type { SessionAddress } from "../../ports/sessions.ts";
import { buildKey, normaliseId } from "./session-keys.ts";

/** The origin of a message. */
export interface Origin {
  readonly channel: string;
  /** `default` where a channel has only one. */
  readonly accountId: string;
  readonly peer: {
    readonly kind: PeerKind;
    readonly id: string;
    /** Set only where the platform says that the id is a phone number. */
    readonly phone?: string;
  };
}
export interface RoutingConfig {
  readonly bindings: readonly AgentBinding[];
  /** Ids of the agents that exist. */
  readonly agents: ReadonlySet<string>;
  readonly defaultAgent: string;
  readonly dmScope: DmScope;
  readonly mainKey: string;
  readonly links: IdentityLinks;
}
export type Route =
  | { readonly ok: true; readonly agentId: string; readonly key: string; readonly address: SessionAddress }
  /** `unknown-agent`: the binding names an agent that does not exist. No other agent answers: access was decided for this one. */
  | { readonly ok: false; readonly problem: "unknown-agent"; readonly agentId: string }
  | { readonly ok: false; readonly problem: "bad-key"; readonly why: string };

const same = (asked: string | undefined, is: string): boolean => asked === undefined || asked.trim().toLowerCase() === is;

/** Whether a binding matches. Peer ids are compared as the platform spells them; phone numbers also in E.164 form. */
export function matches({ match }: AgentBinding, origin: Origin): boolean {
  const { channel, accountId, peer } = normalised(origin);
  if (!same(match.channel, channel)) return false;
  if (match.accountId !== undefined && normaliseId(match.accountId, "default") !== accountId) return false;
  if (!same(match.peer?.kind, peer.kind)) return false;
  const id = match.peer?.id;
  if (id === undefined || id === peer.id) return true;
  const phone = phoneOf(asPeer(origin));
  return phone !== undefined && e164(id, "written") === phone;
}
function normalised(origin: Origin): Origin {
  return { ...origin, channel: origin.channel.toLowerCase(), accountId: normaliseId(origin.accountId, "default") };
}
const asPeer = ({ channel, peer }: Origin): Peer => ({
  channel: channel.toLowerCase(),
  id: peer.id,
  ...(peer.phone === undefined ? {} : { phone: peer.phone }),
});

/** The agent that answers. Undefined in `known`: the binding names one that does not exist. */
export function agentFor(
  origin: Origin,
  config: Pick<RoutingConfig, "bindings" | "agents" | "defaultAgent">,
): { readonly agentId: string; readonly known: boolean } {
  const binding = config.bindings.find((candidate) => matches(candidate, origin));
  const agentId = binding?.agentId ?? config.defaultAgent;
  return { agentId, known: binding === undefined || config.agents.has(agentId) };
}

/** The conversation of a message. */
export function routeInbound(origin: Origin, config: RoutingConfig): Route {
  const { agentId, known } = agentFor(origin, config);
  if (!known) return { ok: false, problem: "unknown-agent", agentId };
  const built = buildKey(addressOf(normalised(origin), agentId, config), config.mainKey);
  return built.ok ? { ok: true, agentId, key: built.key, address: built.address } : { ok: false, problem: "bad-key", why: built.problem };
}

function addressOf(origin: Origin, agentId: string, { dmScope, links }: RoutingConfig): SessionAddress {
  const { channel, accountId, peer } = origin;
  if (peer.kind !== "dm") return { form: "channel", agentId, channel, kind: peer.kind, peer: peer.id };
  switch (dmScope) {
    case "main":
      return { form: "main", agentId };
    case "per-peer":
      return { form: "peer", agentId, peer: peerName(links, asPeer(origin), true) };
    case "per-channel-peer":
      return { form: "channel", agentId, channel, kind: "dm", peer: peerName(links, asPeer(origin), false) };
    case "per-account-channel-peer":
      return { form: "account", agentId, channel, accountId, peer: peerName(links, asPeer(origin), false) };
  }
}
