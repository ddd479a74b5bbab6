/**
 * Must be the first import of the Worker. protobufjs writes strings by `buffer.utf8Write(text, position)`, without a length;
 * workerd refuses that for texts of 40 characters and more, so long messages could not be encrypted.
 */
type Utf8Write = (this: Uint8Array, text: string, offset?: number, length?: number) => number;
const prototype: { utf8Write?: Utf8Write } = Buffer.prototype;

/** Passes the length that Node would assume. */
export function withLength(write: Utf8Write): Utf8Write {
  return function utf8Write(this: Uint8Array, text, offset = 0, length = this.length - offset) {
    return write.call(this, text, offset, length);
  };
}
if (prototype.utf8Write) prototype.utf8Write = withLength(prototype.utf8Write);
