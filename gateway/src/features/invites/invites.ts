/** Creates, lists, revokes and exchanges invitations (RM7 to RM9, RM12). A part of its own, which is loaded with the first one. */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type {
  InviteCreateParams,
  InviteCreateResult,
  InviteListResult,
  InviteRevokeParams,
  InviteRevokeResult,
  JoinRequest,
  JoinResult,
} from "../../../../protocol/gen/types.ts";
import type { FailureWindow } from "../../kernel/limits.ts";
import { isSameMachine, machineNameProblem } from "../../kernel/machine-name.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { MadeToken } from "../../kernel/token-store.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { InviteStore, isUsedWith } from "./store.ts";

export interface InvitePorts extends Pick<KernelPorts, "audit" | "database" | "ids" | "now" | "tokens"> {
  readonly nodes: Pick<NodesPort["nodes"], "list">;
}
interface Ports extends InvitePorts {
  readonly failures: FailureWindow;
}

const SECRET_CHARS = 32;
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const TOKEN_ID_CHARS = 8;

export class Invites {
  readonly #ports: Ports;
  readonly #store: InviteStore;

  constructor(ports: Ports) {
    this.#ports = ports;
    this.#store = new InviteStore(ports.database);
  }

  async create(now: number, { kind, name }: InviteCreateParams): Promise<Result<InviteCreateResult>> {
    const { ids, tokens } = this.#ports;
    // A client's name is a note in the list of tokens, and names no machine.
    const misnamed = kind === "client" || name === undefined ? undefined : machineNameProblem(name);
    const problem = misnamed ?? (kind === "node" ? tokens.nameProblem(name, now) : undefined);
    if (problem !== undefined) return fail("protocol.invalid_params", problem.message, problem.hint);
    const secret = ids.name(SECRET_CHARS);
    const hash = await ids.sha256(secret);
    if (this.#store.open(now) >= LIMITS.invites) return fail("invite.limit");
    const inviteId = ids.name(TOKEN_ID_CHARS);
    const expiresAt = now + LIMITS.inviteMs;
    this.#store.add({ id: inviteId, kind, ...(name === undefined ? {} : { name }), expiresAt }, hash, now);
    const warning = kind === "node" && name !== undefined ? this.#connectedWarning(name) : undefined;
    return succeed({ inviteId, secret, expiresAt, ...(warning === undefined ? {} : { warning }) });
  }
  /** No refusal: a person invites the same machine again after a new installation. */
  #connectedWarning(name: string): string | undefined {
    const connected = this.#ports.nodes.list().find(({ nodeId, online }) => online && isSameMachine(nodeId, name));
    return (
      connected &&
      `A machine called \`${connected.nodeId}\` is connected. If this is another machine, choose another name: \`gsv invite node --name OTHER\`.`
    );
  }
  list(now: number): Result<InviteListResult> {
    const invites = this.#store.list(now).map(({ id, kind, name, expiresAt }) => ({
      inviteId: id,
      kind,
      ...(name === undefined ? {} : { name }),
      expiresAt,
    }));
    return succeed({ invites, count: invites.length });
  }
  revoke(now: number, { inviteId }: InviteRevokeParams): Result<InviteRevokeResult> {
    const revoked = [...this.#store.revoke(inviteId, now)];
    if (inviteId === undefined || revoked.length > 0) return succeed({ ok: true, revoked });
    const tokenId = this.#store.tokenOf(inviteId);
    if (tokenId === undefined) return fail("invite.not_found");
    return fail(
      "invite.used",
      `This invitation was used already, for the token ${tokenId}.`,
      `Revoke the token: \`gsv token revoke ${tokenId}\`.`,
    );
  }
  join(request: JoinRequest, address: string): Promise<Result<JoinResult>> {
    return join(this.#ports, this.#store, this.#ports.failures, request, address);
  }
}

/**
 * The token follows from the secret of the invitation and the nonce, which only the joiner knows beside the gateway. So a repeated request
 * gets the same token, although the gateway stores nothing but its digest.
 */
async function tokenOf({ kind, secret, nonce }: JoinRequest, sha256: (text: string) => Promise<string>): Promise<MadeToken> {
  const bytes = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-512" };
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), algorithm, false, ["sign"]);
  const derived = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes.encode(`join:${kind}:${nonce}`)));
  const id = [...derived.slice(32, 32 + TOKEN_ID_CHARS)].map((byte) => BASE32.charAt(byte & 31)).join("");
  const hex = toHex(derived.slice(0, 32));
  const token = `gsv_${kind}_${id}_${hex}`;
  return { id, token, hash: await sha256(token) };
}

async function join(
  ports: Ports,
  store: InviteStore,
  failures: FailureWindow,
  request: JoinRequest,
  address: string,
): Promise<Result<JoinResult>> {
  const { audit, ids, now: clock } = ports;
  const [hash, nonceHash, made] = await Promise.all([ids.sha256(request.secret), ids.sha256(request.nonce), tokenOf(request, ids.sha256)]);
  const now = clock();
  const done = store.atomic(() => exchange(ports, store, request, { hash, nonceHash, made, now }));
  if (done.ok) return done;
  const { reason } = done.error;
  audit.append({ actor: "invite", origin: "http", action: "invite.join", decision: "denied", detail: reason });
  return reason === "invite.wrong" && failures.failed(address, now) ? fail("limit.rate") : done;
}

interface Proof {
  readonly hash: string;
  readonly nonceHash: string;
  readonly made: MadeToken;
  readonly now: number;
}

/** In one transaction: the invitation is used, its token exists, and the audit says so; or none of these. */
function exchange(
  { audit, tokens }: Ports,
  store: InviteStore,
  { kind, nodeId: ownName, label }: JoinRequest,
  { hash, nonceHash, made, now }: Proof,
): Result<JoinResult> {
  const invite = store.find(hash);
  if (invite === undefined || invite.kind !== kind) return fail("invite.wrong");
  if (invite.used !== undefined) {
    const entry = tokens.get(invite.used.tokenId);
    const isSame = isUsedWith(invite.used, nonceHash) && now < invite.expiresAt;
    if (!isSame || entry === undefined || entry.revokedAt !== undefined) return fail("invite.used");
    return succeed({ kind, token: made.token, ...(entry.nodeId === undefined ? {} : { nodeId: entry.nodeId }) });
  }
  if (now >= invite.expiresAt) return fail("invite.expired");
  const nodeId = kind === "node" ? (invite.name ?? ownName) : undefined;
  const isValid = ({ revokedAt, expiresAt }: { revokedAt?: number; expiresAt?: number }): boolean =>
    revokedAt === undefined && (expiresAt === undefined || expiresAt > now);
  // An invitation by name is for this machine, also when it joins again.
  const isTaken = (name: string): boolean =>
    tokens.list().some((token) => token.nodeId !== undefined && isSameMachine(token.nodeId, name) && isValid(token));
  if (nodeId !== undefined && invite.name === undefined && isTaken(nodeId)) return fail("invite.name_taken");
  const note = kind === "client" ? (invite.name ?? label) : label;
  const params = { kind, ...(nodeId === undefined ? {} : { nodeId }), ...(note === undefined ? {} : { label: note }) };
  const added = tokens.add(made, params, now);
  if (!added.ok) return added;
  store.use(invite.id, nonceHash, made.id);
  const entry = {
    actor: `invite:${invite.id}`,
    origin: "http",
    action: "invite.join",
    target: nodeId ?? kind,
    decision: "allowed",
  } as const;
  audit.append({ ...entry, detail: `token ${made.id}` });
  return succeed({ kind, token: made.token, ...(nodeId === undefined ? {} : { nodeId }) });
}
