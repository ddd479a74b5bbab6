/** The kit's host for a platform, in memory, with a clock that the test controls. */
import type { InboundItem, PlatformHost } from "../../kit/src/platform.ts";

export class MemoryHost implements PlatformHost {
  readonly accountId = "default";
  readonly rows = new Map<string, string>();
  readonly taken: InboundItem[] = [];
  readonly logs: string[] = [];
  time = 1_800_000_000_000;
  changes = 0;
  readonly now = (): number => this.time;
  readonly kv: PlatformHost["kv"] = {
    get: <T>(key: string): T | undefined => {
      const row = this.rows.get(key);
      return row === undefined ? undefined : (JSON.parse(row) as T);
    },
    put: (key, value) => void this.rows.set(key, JSON.stringify(value)),
    delete: (key) => void this.rows.delete(key),
    keys: (prefix) => [...this.rows.keys()].filter((key) => key.startsWith(prefix)).toSorted(),
  };
  transaction<T>(work: () => T): T {
    return work();
  }
  take(item: InboundItem): boolean {
    if (this.taken.some(({ key }) => key === item.key)) return false;
    this.taken.push(item);
    return true;
  }
  async readFile(): Promise<null> {
    return null;
  }
  changed(): void {
    this.changes += 1;
  }
  /** Advances the clock. */
  after(ms: number, work: () => void): () => void {
    let cancelled = false;
    if (ms < 5_000)
      queueMicrotask(() => {
        if (cancelled) return;
        this.time += ms;
        work();
      });
    return () => {
      cancelled = true;
    };
  }
  log(event: string): void {
    this.logs.push(event);
  }
}
