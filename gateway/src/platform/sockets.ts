/**
 * Hibernating WebSockets: accepting them, what is remembered with each, and how to tell a dead one. Knows nothing of the
 * protocol. All failures of a socket mean the same here: it is gone.
 */
/** What the platform offers for hibernating sockets: the state of a Durable Object. */
export type SocketHost = Pick<
  DurableObjectState,
  "acceptWebSocket" | "getWebSockets" | "getWebSocketAutoResponseTimestamp" | "setWebSocketAutoResponse"
>;
export type Socket = Pick<WebSocket, "send" | "close" | "serializeAttachment" | "deserializeAttachment" | "readyState">;

/** A text that is answered without waking the object (F6). */
export function answerPings(host: SocketHost): void {
  host.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
}

/** When the peer last sent `ping`; undefined when it never did. */
export const lastPingAt = (host: SocketHost, socket: WebSocket): number | undefined =>
  host.getWebSocketAutoResponseTimestamp(socket)?.getTime();

/** Hands a text to the socket. False: it is gone. */
export function sendText(socket: Socket, text: string): boolean {
  try {
    if (socket.readyState !== WebSocket.OPEN) return false;
    socket.send(text);
    return true;
  } catch {
    return false;
  }
}

/** Closes the socket; a peer that is gone already is no error. The reason is cut to what the protocol can carry (123 bytes). */
export function closeSocket(socket: Socket, code: number, reason: string): void {
  const bytes = new TextEncoder().encode(reason);
  const short = bytes.length <= 123 ? reason : new TextDecoder().decode(bytes.subarray(0, 120)).replace(/\uFFFD+$/, "");
  try {
    socket.close(code, short);
  } catch {
    // Closed already.
  }
}

/** Bytes that wait to be sent, where the platform tells. */
export function bufferedBytes(socket: Socket): number {
  const amount: unknown = Reflect.get(socket, "bufferedAmount");
  return typeof amount === "number" ? amount : 0;
}

/** Remembers `state` with the socket through hibernation. False: it is too large for the platform; what was remembered stays. */
export function remember(socket: Socket, state: unknown): boolean {
  try {
    socket.serializeAttachment(state);
    return true;
  } catch {
    return false;
  }
}
