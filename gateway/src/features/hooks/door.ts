/**
 * A delivery, from the signature to the stored row (rules HK2-HK5, HK8). A name that no hook has and a wrong signature look alike from
 * outside, also in the work that they cost. Begins nothing itself.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { nestsDeeper } from "../../../../protocol/runtime/codec.ts";
import type { HookTarget } from "../../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { HOOK_PROOF_HEADERS, type HookRequest, type HookTakenAs } from "../../ports/http.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { jobOf, type QueuePorts } from "./queue.ts";
import type { HookSecrets } from "./secrets.ts";
import { type Claim, claimOf, hasBearer, type HeaderMap, keyOf, signedDigest, deliveryId } from "./signature.ts";
import type { StoredHook } from "./store.ts";
import { type Brought, fits, render } from "./template.ts";

export interface DoorPorts extends QueuePorts, Pick<KernelPorts, "audit" | "config" | "ids" | "log"> {
  readonly secrets: HookSecrets;
}
const JOB_TEMPLATE = "{{body}}";
const MAX_DEPTH = 64;
/** Refused requests are written this often; the audit has the first ones of each minute. */
const WRITE_MS = 60_000;
const NO_KEY = new TextEncoder().encode("no hook has this name, and the work is the same");
const NO_CLAIM: Claim = { prefix: "", digests: [] };

interface Proof {
  /** The sender's id of the delivery. Absent: it gave none. */
  readonly id?: string;
  /** The digest of the signature, when the signature does not cover an id. */
  readonly digest?: string;
}

export class Door {
  readonly #ports: DoorPorts;
  readonly #refused = new Map<string, { count: number; at: number }>();
  #writtenAt = 0;

  constructor(ports: DoorPorts) {
    this.#ports = ports;
  }

  async take({ name, headers, body }: HookRequest): Promise<Result<HookTakenAs>> {
    const { store } = this.#ports;
    const named = new Map(headers);
    const hook = store.find(name);
    const proof = this.#proofOf(hook, named, body);
    if (hook === undefined || proof === undefined) return this.#refuse(hook?.name);
    const read = readBody(body);
    if (!read.ok) return read;
    if (hook.body.form === "github" && named.get("x-github-event") === "ping") return succeed("ignored");
    const id = idOf(hook, proof, read.value) ?? this.#ports.ids.name(26);
    const brought: Brought = { hook: name, id, body: read.value, headers: shownHeaders(named) };
    const taken = store.atomic(() => this.#accept(hook, brought, proof.digest));
    if (taken.ok && taken.value === "accepted") this.#record(name, id);
    return taken;
  }

  /** Undefined: the request is not the owner of the secret's. */
  #proofOf(hook: StoredHook | undefined, headers: HeaderMap, body: Uint8Array): Proof | undefined {
    const secret = hook === undefined ? undefined : this.#ports.secrets.open(hook);
    const form = hook?.body.form ?? formOf(headers);
    // Each request costs one comparison of a token and one digest of the body: the time tells neither names nor forms.
    const isBearer = hasBearer(headers, secret ?? "") && secret !== undefined;
    const claim = claimOf(form, headers);
    const key = secret === undefined ? undefined : keyOf(form, secret);
    const digest = signedDigest(claim ?? NO_CLAIM, key ?? NO_KEY, body, this.#ports.now());
    if (form === "bearer" && headers.has("authorization")) return isBearer ? ownId(headers) : undefined;
    if (digest === undefined || key === undefined) return undefined;
    const id = claim?.id === undefined ? {} : { id: claim.id };
    // The digest is the same when the request comes again, whatever id stands beside it.
    return form === "github" || form === "stripe" ? { ...id, digest } : id;
  }
  #refuse(name: string | undefined): Result<never> {
    const { audit, now } = this.#ports;
    const at = now();
    if (name !== undefined) this.#refused.set(name, { count: (this.#refused.get(name)?.count ?? 0) + 1, at });
    if (Math.abs(at - this.#writtenAt) >= WRITE_MS) this.writeRefused();
    const target = name === undefined ? {} : { target: name };
    const entry = {
      actor: "hook",
      origin: "http",
      action: "hook.deliver",
      ...target,
      decision: "denied",
      detail: "not signed with the secret",
    } as const;
    audit.append(entry);
    return fail("hook.refused");
  }
  /** Brings the numbers in memory into the table. */
  writeRefused(): void {
    this.#writtenAt = this.#ports.now();
    for (const [name, { count, at }] of this.#refused) this.#ports.store.countRefused(name, count, at);
    this.#refused.clear();
  }

  #accept(hook: StoredHook, brought: Brought, digest: string | undefined): Result<HookTakenAs> {
    const { config, store, now, wokenJobs } = this.#ports;
    const { name, body } = hook;
    if (store.isKnown(name, brought.id, digest)) return succeed("repeated");
    if (!fits(body.only, brought)) {
      store.countIgnored(name, now());
      return succeed("ignored");
    }
    const jobId = jobOf(hook, this.#ports);
    const state = wokenJobs.stateOf(jobId);
    if (state === "none" || state === "paused") return fail("hook.no_target");
    // Such as an agent of a pack that is off. The sender keeps the delivery and sends it again.
    const agentId = wokenJobs.agentOf(jobId);
    if (agentId === undefined || !config.hasAgent(agentId)) return fail("hook.no_target");
    if (store.lastMinute(name, now()) >= LIMITS.hookPerMinute)
      return fail("limit.rate", `A hook takes ${LIMITS.hookPerMinute} deliveries a minute.`, "Send it again in a minute.");
    if (store.waitingCount(name) >= LIMITS.hookQueue) return fail("hook.full");
    store.accept(name, brought.id, digest, render(templateOf(hook.body.target), brought), now());
    return succeed("accepted");
  }
  #record(name: string, id: string): void {
    const { audit } = this.#ports;
    const entry = { actor: "hook", origin: `hook ${name}`, action: "hook.deliver", target: name, decision: "allowed", detail: id } as const;
    audit.append(entry);
  }
}

export function templateOf(target: HookTarget): string {
  if (target.kind === "job") return target.message ?? JOB_TEMPLATE;
  return target.spec.mode === "task" ? target.spec.message : target.spec.text;
}
/** For a name that no hook has: the form that the request looks like. */
function formOf(headers: HeaderMap): StoredHook["body"]["form"] {
  if (headers.has("x-hub-signature-256")) return "github";
  if (headers.has("stripe-signature")) return "stripe";
  return headers.has("webhook-signature") ? "standard" : "bearer";
}
const ownId = (headers: HeaderMap): Proof => deliveryId(headers.get("idempotency-key") || headers.get("webhook-id"));
/** Stripe's id is in the body, which is signed. */
function idOf(hook: StoredHook, { id }: Proof, body: unknown): string | undefined {
  if (hook.body.form !== "stripe") return id;
  const own = isJsonObject(body) ? body["id"] : undefined;
  return typeof own === "string" ? deliveryId(own).id : undefined;
}
function shownHeaders(headers: HeaderMap): HeaderMap {
  const hidden: ReadonlySet<string> = new Set(HOOK_PROOF_HEADERS);
  return new Map([...headers].filter(([name]) => !hidden.has(name)));
}
function readBody(body: Uint8Array): Result<unknown> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
    if (nestsDeeper(text, MAX_DEPTH)) return fail("hook.bad_body", `The body is nested deeper than ${MAX_DEPTH}.`);
    return succeed(JSON.parse(text) as unknown);
  } catch {
    return fail("hook.bad_body");
  }
}
