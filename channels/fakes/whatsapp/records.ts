/** What happened in the fake, in order. Tests wait for entries instead of for time. */
import type { Note } from "./types.ts";

export class Records {
  readonly log: Note[] = [];
  readonly #watchers = new Set<() => void>();

  note(kind: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.log.push({ ...fields, kind, at: Date.now() });
    for (const watcher of [...this.#watchers]) watcher();
  }
  /** Waits until the condition holds, at most `ms`. */
  async until<T>(what: string, look: () => T | undefined | false, ms = 10_000): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const check = (): void => {
        const found = look();
        if (found === undefined || found === false) return;
        end();
        resolve(found);
      };
      const timer = setTimeout(() => {
        end();
        reject(
          new Error(
            `${what}: not within ${ms} ms; last: ${this.log
              .slice(-8)
              .map(({ kind }) => kind)
              .join(", ")}`,
          ),
        );
      }, ms);
      const end = (): void => {
        clearTimeout(timer);
        this.#watchers.delete(check);
      };
      this.#watchers.add(check);
      check();
    });
  }
  noted(kind: string): readonly Note[] {
    return this.log.filter((note) => note.kind === kind);
  }
}
