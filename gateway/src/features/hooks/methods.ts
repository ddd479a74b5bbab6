/** `hook.*`: adds, shows and removes hooks, and signs a sample (rules HK1, HK6, HK9). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ParamsOf, ResultOf } from "../../../../protocol/gen/methods.ts";
import { asAgentId, type Hook, type HookDelivery, type HookForm, type HookTarget } from "../../../../protocol/gen/types.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { type Door, type DoorPorts, templateOf } from "./door.ts";
import { jobOf } from "./queue.ts";
import { keyOf, sign, toBase64 } from "./signature.ts";
import type { StoredDelivery, StoredHook } from "./store.ts";
import { conditionProblem, templateProblem } from "./template.ts";

export interface MethodPorts extends DoorPorts, Pick<KernelPorts, "config"> {
  readonly door: Door;
}
const SHOWN = 20;
const SECRET_BYTES = 32;
const pathOf = (name: string): string => `/hooks/${name}`;

export class Hooks {
  readonly #ports: MethodPorts;
  constructor(ports: MethodPorts) {
    this.#ports = ports;
  }

  async add(params: ParamsOf<"hook.add">): Promise<Result<ResultOf<"hook.add">>> {
    const { store, secrets, wokenJobs, now, config } = this.#ports;
    const { name, form, target, only = [] } = params;
    if (store.find(name) !== undefined) return fail("hook.exists");
    const agent = this.#agentOf(params.agentId, target);
    if (!agent.ok) return agent;
    const agentId = agent.value;
    const problem = target.kind === "run" ? await wokenJobs.problemOf(target.spec, agentId) : undefined;
    if (problem !== undefined) return problem;
    const body = { agentId, form, target, only, createdAt: now() };
    const wrong = only.map(conditionProblem).find((text) => text !== undefined) ?? templateProblem(templateOf(target));
    if (wrong !== undefined)
      return fail(
        "hook.bad_template",
        wrong,
        "Name values as `{{body.issue.title}}`, `{{header.x-github-event}}`, `{{id}}` or `{{body}}`, and conditions as `body.action=opened`.",
      );
    if (params.secret === undefined && form === "stripe")
      return fail(
        "hook.bad_secret",
        "Stripe makes the secret.",
        `At Stripe, add an endpoint with the address of this gateway and ${pathOf(name)}, then repeat the command with --secret - and paste the signing secret.`,
      );
    const secret = params.secret ?? this.#newSecret(form);
    if (keyOf(form, secret) === undefined)
      return fail(
        "hook.bad_secret",
        "A secret of Standard Webhooks is `whsec_` and base64 of 24 to 64 bytes.",
        "Leave it out, and the gateway makes one.",
      );
    const sealed = secrets.seal(name, secret);
    if (!sealed.ok) return sealed;
    const stored = store.atomic((): Result<void> => {
      // The checks above have waited.
      if (store.find(name) !== undefined) return fail("hook.exists");
      if (secrets.isTaken(secret))
        return fail("hook.bad_secret", "Another hook has this secret.", "Give each hook a secret of its own, also at the other service.");
      if (store.count() >= LIMITS.hooks) return fail("hook.too_many", `There are ${LIMITS.hooks} hooks, which is the limit.`);
      if (!config.hasAgent(agentId)) return unknownAgent(config, agentId);
      if (target.kind === "run") wokenJobs.keep(name, agentId, target.spec, now());
      store.add(name, body, sealed.value);
      return succeed(undefined);
    });
    if (!stored.ok) return stored;
    secrets.hide();
    const hook = store.find(name);
    if (hook === undefined) return fail("internal");
    return succeed({ ok: true, hook: this.#shown(hook), ...(params.secret === undefined ? { secret } : {}) });
  }
  #agentOf(given: string | undefined, target: HookTarget): Result<string> {
    const { config, wokenJobs } = this.#ports;
    if (target.kind === "job") {
      const agentId = wokenJobs.agentOf(target.jobId);
      return agentId === undefined ? fail("cron.not_found") : succeed(agentId);
    }
    const agentId = given ?? config.defaultAgentId();
    return config.hasAgent(agentId) ? succeed(agentId) : unknownAgent(config, agentId);
  }
  #newSecret(form: HookForm): string {
    const { ids } = this.#ports;
    return form === "standard" ? `whsec_${toBase64(ids.bytes(SECRET_BYTES))}` : `gsvh_${ids.name(52)}`;
  }

  list(): ResultOf<"hook.list"> {
    const { store, door } = this.#ports;
    door.writeRefused();
    return { hooks: store.list().map((hook) => this.#shown(hook)) };
  }
  show({ name, limit }: ParamsOf<"hook.show">): Result<ResultOf<"hook.show">> {
    const { store, door } = this.#ports;
    door.writeRefused();
    const hook = store.find(name);
    if (hook === undefined) return fail("hook.not_found");
    return succeed({ hook: this.#shown(hook), deliveries: store.deliveries(name, limit ?? SHOWN).map((one) => this.#shownDelivery(one)) });
  }
  remove(name: string): ResultOf<"hook.remove"> {
    const { store, secrets, wokenJobs } = this.#ports;
    const removed = store.atomic(() => {
      wokenJobs.drop(name);
      return store.remove(name);
    });
    secrets.hide();
    return { ok: true, removed };
  }
  test({ name, body: given, event }: ParamsOf<"hook.test">): Result<ResultOf<"hook.test">> {
    const { store, secrets, ids, now } = this.#ports;
    const hook = store.find(name);
    if (hook === undefined) return fail("hook.not_found");
    const { form } = hook.body;
    const secret = secrets.open(hook);
    // A bearer's sample is signed, because the secret itself is not shown.
    const key = secret === undefined ? undefined : keyOf(form, secret);
    if (key === undefined) return fail("hook.no_target", UNREADABLE, repairOf(name));
    const deliveryId = `test_${ids.name(20)}`;
    const sample = sampleOf(given ?? JSON.stringify({ test: true, hook: name }), form, deliveryId);
    if (!sample.ok) return sample;
    const headers = {
      "content-type": "application/json",
      ...sign(form, key, deliveryId, now(), sample.value),
      ...(form === "github" ? { "x-github-event": event ?? "test" } : {}),
    };
    return succeed({ path: pathOf(name), headers, body: sample.value, deliveryId });
  }

  #shown(stored: StoredHook): Hook {
    const { name, body, accepted, ignored, refused, lastAt, lastRefusedAt } = stored;
    const problem = this.#problemOf(stored);
    return {
      name,
      path: pathOf(name),
      agentId: asAgentId(body.agentId),
      form: body.form,
      target: body.target,
      only: [...body.only],
      createdAtMs: body.createdAt,
      accepted,
      ignored,
      refused,
      waiting: this.#ports.store.waitingCount(name),
      ...(lastAt === undefined ? {} : { lastAtMs: lastAt }),
      ...(lastRefusedAt === undefined ? {} : { lastRefusedAtMs: lastRefusedAt }),
      ...(problem === undefined ? {} : { problem }),
    };
  }
  #problemOf(stored: StoredHook): string | undefined {
    const { config, secrets, wokenJobs } = this.#ports;
    if (secrets.open(stored) === undefined) return `${UNREADABLE} ${repairOf(stored.name)}`;
    const jobId = jobOf(stored, this.#ports);
    const state = wokenJobs.stateOf(jobId);
    const isJob = stored.body.target.kind === "job";
    if (state === "none") return isJob ? "Its job was removed." : `The agent ${stored.body.agentId} was removed.`;
    if (state === "paused") return "Its job is paused.";
    const agentId = wokenJobs.agentOf(jobId);
    return agentId === undefined || config.hasAgent(agentId)
      ? undefined
      : `There is no agent ${agentId} now. It may be one of a pack that is off.`;
  }
  #shownDelivery({ key, at, text, run, error }: StoredDelivery): HookDelivery {
    const known = run === undefined ? undefined : this.#ports.wokenJobs.runOf(run);
    if (known !== undefined) return { deliveryId: key, atMs: at, ...known };
    // The log of runs keeps fewer rows than there are ids.
    const status = text !== undefined ? "waiting" : run === undefined ? "skipped" : "ok";
    return { deliveryId: key, atMs: at, status, ...(error === undefined ? {} : { error }) };
  }
}
/** An imported home has no keys. */
const UNREADABLE = "Its secret can't be opened here.";
const repairOf = (name: string): string =>
  `\`gsv hook remove ${name}\`, then \`gsv hook add ${name}\`, and give its sender the new secret.`;

/** Each sample has its own bytes, so that it is no repetition of an earlier one. */
function sampleOf(text: string, form: HookForm, id: string): Result<string> {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== "object" || value === null || Array.isArray(value)) return fail("hook.bad_body", "A sample is a JSON object.");
    const own = form === "stripe" ? { id } : form === "github" ? { gsv_test: id } : {};
    return succeed(JSON.stringify({ ...value, ...own }));
  } catch {
    return fail("hook.bad_body");
  }
}
