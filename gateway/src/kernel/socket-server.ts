/**
 * Serves sockets from the upgrade to the close: the deadline for hello-ok, the handshake, then requests. Knows no method: `handshake.ts`
 * admits connections, `dispatcher.ts` calls handlers.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Admission, HttpRefusal } from "./admission.ts";
import { bearerToken } from "./bearer.ts";
import type { OpenConnection } from "./connections.ts";
import type { LinkEnd } from "./link-end.ts";
import { dispatch, type DispatchPorts } from "./dispatcher.ts";
import type { FeatureSet } from "./feature-set.ts";
import { CLOSE, handshake, type HandshakePorts } from "./handshake.ts";
import { addressGroup } from "./limits.ts";

export type SocketPorts = DispatchPorts &
  HandshakePorts & { readonly admission: Admission; readonly features: Pick<FeatureSet, "chunk" | "gone"> };

/** The sender of an upgrade. */
export interface UpgradeCaller {
  /** What counts as one address; empty where it is not known. */
  readonly address: string;
  /** The request carries a valid token. */
  readonly vouched: boolean;
}

export class SocketServer {
  readonly #ports: SocketPorts;
  readonly #helloTimers = new Map<WebSocket, ReturnType<typeof setTimeout>>();

  constructor(ports: SocketPorts) {
    this.#ports = ports;
  }

  /** Sockets that were open when the object slept keep their deadline. */
  resume(): void {
    for (const open of this.#ports.connections.opening()) this.#expectHello(open);
  }

  /** Who asks for a socket. `address` is empty where it is not known. */
  async caller(request: Request, address: string): Promise<UpgradeCaller> {
    const token = bearerToken(request.headers.get("Authorization"));
    const vouched = await this.#ports.admission.vouches({ ...(token === undefined ? {} : { token }), address });
    return { address: addressGroup(address), vouched };
  }
  /** Why this request gets no socket; undefined when it gets one. */
  refusal(request: Request, { address, vouched }: UpgradeCaller): HttpRefusal | undefined {
    const { connections, admission } = this.#ports;
    const closing = connections.closingCount(address);
    return admission.upgradeRefusal({
      method: request.method,
      upgrade: request.headers.get("Upgrade"),
      origin: request.headers.get("Origin"),
      vouched,
      closingSockets: closing.total,
      closingFromAddress: closing.sameAddress,
      address,
      readySockets: connections.readyCount() + connections.vouchedCount(),
    });
  }
  /** A socket without a hello makes way: sockets that only wait must not keep newer ones out. */
  accept(socket: WebSocket, { address, vouched }: UpgradeCaller): void {
    const { connections } = this.#ports;
    const surplus = vouched ? undefined : connections.surplus(address);
    if (surplus !== undefined) {
      connections.close(surplus.socket, CLOSE.tryLater, "too many connections without a hello");
      this.#settleHello(surplus.socket);
    }
    this.#expectHello(connections.open(socket, address, vouched));
  }

  /** A chunk of a file is taken at once. */
  message(socket: WebSocket, message: string | ArrayBuffer): Promise<void> | void {
    const connection = this.#ports.connections.of(socket);
    if (connection === undefined) return undefined;
    if (connection.phase === "open") return this.#greet(connection, message).then(() => this.#settleHello(socket));
    if (typeof message === "string") return dispatch(this.#ports, connection, message);
    if (!this.#ports.features.chunk(connection, message)) this.#ports.connections.strayed(connection, this.#ports.log);
  }

  /** The socket is gone. */
  gone(socket: WebSocket, end: LinkEnd): void {
    const connection = this.#ports.connections.ended(socket);
    this.#settleHello(socket);
    if (connection?.phase === "ready") this.#ports.features.gone(connection, end);
  }

  async #greet(open: OpenConnection, message: string | ArrayBuffer): Promise<void> {
    const { connections } = this.#ports;
    if (typeof message !== "string") {
      connections.close(open.socket, CLOSE.protocol, "binary frames come after hello-ok");
      return;
    }
    const early = await handshake(this.#ports, open, message);
    const ready = connections.of(open.socket);
    if (ready?.phase === "ready") await Promise.all(early.map((text) => dispatch(this.#ports, ready, text)));
  }

  #expectHello(open: OpenConnection): void {
    const { connections, now } = this.#ports;
    const wait = Math.max(0, open.openedAt + LIMITS.connectTimeoutMs - now());
    const timer = setTimeout(() => {
      this.#helloTimers.delete(open.socket);
      if (connections.of(open.socket) === open) connections.close(open.socket, CLOSE.timeout, "no connect request in time");
    }, wait);
    this.#helloTimers.set(open.socket, timer);
  }
  /** Clears the timer of the hello: a timer would keep the object from hibernating. */
  #settleHello(socket: WebSocket): void {
    if (this.#ports.connections.of(socket)?.phase === "open") return;
    clearTimeout(this.#helloTimers.get(socket));
    this.#helloTimers.delete(socket);
  }
}
