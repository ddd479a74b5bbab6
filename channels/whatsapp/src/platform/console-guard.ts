/**
 * Lets only our own log lines through the console. libsignal prints sessions with their private keys, and Baileys prints errors with
 * message contents: neither may reach a log (promises S5, S17). Import it before any library, so that none keeps the old functions.
 */
type Print = (...args: unknown[]) => void;
const METHODS = ["log", "info", "warn", "error", "debug", "trace", "dir", "table", "group", "groupCollapsed", "assert"] as const;

/** True for a line of the kit's log: one JSON object with its fields. */
export function isOwnLine(args: readonly unknown[]): boolean {
  const [line] = args;
  if (args.length !== 1 || typeof line !== "string" || !line.startsWith('{"ts":"')) return false;
  try {
    const { event, component } = JSON.parse(line) as { event?: unknown; component?: unknown };
    return typeof event === "string" && typeof component === "string" && component.startsWith("channel-");
  } catch {
    return false;
  }
}
const suppressed = { lines: 0 };

export function guard(target: object): void {
  for (const name of METHODS) {
    const print: unknown = Reflect.get(target, name);
    if (typeof print !== "function") continue;
    const guarded: Print = (...args) => {
      if (isOwnLine(args)) Reflect.apply(print, target, args);
      else suppressed.lines++;
    };
    Reflect.set(target, name, guarded);
  }
}
