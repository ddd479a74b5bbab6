/**
 * Hibernating WebSockets: accepts them, stores state with each, and detects dead ones. Must not know the
 * protocol. Every failure of a socket means that it is closed.
 */
/** The platform's interface for hibernating sockets: a part of a Durable Object's state. */
export type SocketHost = Pick<
  DurableObjectState,
  "acceptWebSocket" | "getWebSockets" | "getWebSocketAutoResponseTimestamp" | "setWebSocketAutoResponse"
>;
export type Socket = Pick<WebSocket, "send" | "close" | "serializeAttachment" | "deserializeAttachment" | "readyState">;

/** A text that the platform answers without waking the object (FR6). */
export function answerPings(host: SocketHost): void {
  host.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
}

/** When the peer last sent `ping`; undefined when it has not. */
export const lastPingAt = (host: SocketHost, socket: WebSocket): number | undefined =>
  host.getWebSocketAutoResponseTimestamp(socket)?.getTime();

/** Sends a text. False means that the socket is closed. */
export const sendText = (socket: Socket, text: string): boolean => send(socket, text);
/** Sends a binary frame. False means that the socket is closed. */
export const sendBytes = (socket: Socket, bytes: Uint8Array<ArrayBuffer>): boolean => send(socket, bytes);
function send(socket: Socket, message: string | Uint8Array<ArrayBuffer>): boolean {
  try {
    if (socket.readyState !== WebSocket.OPEN) return false;
    socket.send(message);
    return true;
  } catch {
    return false;
  }
}

/** Closes the socket; a closed peer is not an error. The reason is cut to the protocol's limit (123 bytes). */
export function closeSocket(socket: Socket, code: number, reason: string): void {
  const bytes = new TextEncoder().encode(reason);
  const short = bytes.length <= 123 ? reason : new TextDecoder().decode(bytes.subarray(0, 120)).replace(/\uFFFD+$/, "");
  try {
    socket.close(code, short);
  } catch {
    // Already closed.
  }
}

/** Bytes that wait to be sent, if the platform reports them. */
export function bufferedBytes(socket: Socket): number {
  const amount: unknown = Reflect.get(socket, "bufferedAmount");
  return typeof amount === "number" ? amount : 0;
}

/** Stores `state` with the socket through hibernation. False means that it is too large; the earlier state stays. */
export function remember(socket: Socket, state: unknown): boolean {
  try {
    socket.serializeAttachment(state);
    return true;
  } catch {
    return false;
  }
}
