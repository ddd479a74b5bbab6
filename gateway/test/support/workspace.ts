/** Shared by the workspace tests: a bucket that counts operations and can fail, and unique names. */
import type { EffectiveConfig } from "../../src/ports/run-context.ts";
import { env } from "cloudflare:workers";
import type { GatewayPort } from "../../src/ports/gateway.ts";
import type { SkillPin } from "../../src/ports/skills.ts";
import type { Bucket } from "../../src/storage/bucket.ts";

type Operation = keyof Bucket;
export interface Watched {
  readonly bucket: Bucket;
  /** Operations since the last call, such as `["list", "get", "get"]`, sorted. */
  taken(): string[];
  /** Runs before an operation, or after it with `after`; may throw. Undefined removes the hook. */
  interfere(what: ((operation: Operation, key: string) => void | Promise<void>) | undefined, when?: "before" | "after"): void;
}
export function watched(bucket: Bucket = env.STORAGE): Watched {
  let log: string[] = [];
  let before: ((operation: Operation, key: string) => void | Promise<void>) | undefined;
  let after: typeof before;
  const run = async <T>(operation: Operation, key: string, work: () => Promise<T>): Promise<T> => {
    log.push(operation);
    await before?.(operation, key);
    const result = await work();
    await after?.(operation, key);
    return result;
  };
  // A wrapper loses the overloads of R2's methods; arguments are passed on unchanged.
  const wrap =
    (operation: Operation) =>
    (key: string | R2ListOptions, ...rest: unknown[]) =>
      run(
        operation,
        typeof key === "string" ? key : (key?.prefix ?? ""),
        () => Reflect.apply(bucket[operation], bucket, [key, ...rest]) as Promise<unknown>,
      );
  const wrapped: Record<Operation, unknown> = {
    get: wrap("get"),
    put: wrap("put"),
    head: wrap("head"),
    delete: wrap("delete"),
    list: wrap("list"),
  };
  return {
    bucket: wrapped as Bucket,
    taken() {
      const out = log.toSorted();
      log = [];
      return out;
    },
    interfere(what, when = "before") {
      before = when === "before" ? what : undefined;
      after = when === "after" ? what : undefined;
    },
  };
}
let counter = 0;
/** A unique agent. */
export const newAgent = (): string => `t${Date.now().toString(36)}-${counter++}`;
export function value<T>(result: { ok: true; value: T } | { ok: false; error: { reason: string; message: string } }): T {
  if (!result.ok) throw new Error(`${result.error.reason}: ${result.error.message}`);
  return result.value;
}
export const reason = (result: { ok: true } | { ok: false; error: { reason: string } }): string => (result.ok ? "ok" : result.error.reason);
export const textAt = async (key: string): Promise<string | undefined> => (await env.STORAGE.get(key))?.text();
/** A gateway whose owner approves each skill as it is first found, and no later change. */
export function approvesAll(
  pins: SkillPin[] = [],
): Pick<GatewayPort, "skillsSeen"> & { readonly pins: SkillPin[]; readonly asked: string[] } {
  const asked: string[] = [];
  return {
    pins,
    asked,
    async skillsSeen(_agentId, seen) {
      for (const skill of seen) {
        asked.push(skill.name);
        if (!pins.some(({ scope, name }) => scope === skill.scope && name === skill.name)) pins.push(skill);
      }
      return [...pins];
    },
  };
}

/** The smallest valid configuration of a run. */
export const config: EffectiveConfig = {
  model: { provider: "demo", id: "demo" },
  timeouts: { llmMs: 1, toolMs: 1 },
  limits: { stepsPerRun: 1, runMs: 1, runCostUsd: 1 },
  session: { mainKey: "main" },
  userTimezone: "UTC",
};
