const mostBytes = 32 * 1024 * 1024;

/** Lines out of chunks of bytes. A line without an end is refused at 32 MB. */
export class LineSplitter {
  #pending: Buffer[] = [];
  #size = 0;

  take(chunk: Buffer): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...this.#pending, chunk.subarray(from, end)]).toString("utf8");
      if (line.trim() !== "") lines.push(line);
      this.#pending = [];
      this.#size = 0;
      from = end + 1;
    }
    this.#size += chunk.length - from;
    if (this.#size > mostBytes) throw new Error(`a line of more than ${mostBytes} bytes`);
    if (from < chunk.length) this.#pending.push(chunk.subarray(from));
    return lines;
  }
}
