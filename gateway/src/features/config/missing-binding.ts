/** Settings that need what this deployment may not have. PURE. */
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { NO_WORKERS_AI } from "../../embeddings/choose.ts";

/** A problem that a change brings, as a sentence; one that was there before blocks no other change. */
export function missingBindingProblem(next: Readonly<GsvConfig>, before: Readonly<GsvConfig>, hasWorkersAi: boolean): string | undefined {
  const needs = ({ memory }: Readonly<GsvConfig>): boolean => memory?.embeddings?.provider === "workers-ai";
  return !hasWorkersAi && needs(next) && !needs(before) ? NO_WORKERS_AI : undefined;
}
