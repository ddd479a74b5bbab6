/** Reads from a tool's result whether the call left a process running on its node, and what has become of it. PURE. */

/** A node chooses the name, and a model and people are shown it as it is. */
const PROCESS_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;
export const isProcessId = (name: string): boolean => PROCESS_ID.test(name);

/** The process that a successful result reports as running. */
export function runningProcess(result: unknown): string | undefined {
  if (typeof result !== "object" || result === null || Reflect.get(result, "status") !== "running") return undefined;
  const id: unknown = Reflect.get(result, "sessionId");
  return typeof id === "string" && isProcessId(id) ? id : undefined;
}
