/**
 * The programs that are ends of their own transfers, and their connections (rule TF13). In memory: a program that is connected again says so
 * once more.
 */
import type { Connection, Connections } from "../../kernel/connections.ts";

export class ProgramEnds {
  readonly #connections: Pick<Connections, "setTransferEnd">;
  /** By the transfer's id. */
  readonly #ends = new Map<string, Connection>();

  constructor(connections: Pick<Connections, "setTransferEnd">) {
    this.#connections = connections;
  }

  of(id: string): Connection | undefined {
    return this.#ends.get(id);
  }
  /** Undefined: the transfer has ended. A connection that lost its last transfer has the limit of requests of any other program. */
  set(id: string, connection: Connection | undefined): void {
    const before = this.#ends.get(id);
    if (connection === undefined) this.#ends.delete(id);
    else this.#ends.set(id, connection);
    const having = new Set(this.#ends.values());
    for (const one of [before, connection]) if (one !== undefined) this.#connections.setTransferEnd(one, having.has(one));
  }
  /** The connection is closed. */
  gone(conn: string): void {
    for (const [id, connection] of this.#ends) if (connection.conn === conn) this.#ends.delete(id);
  }
}
