/** Server-sent events as text, as they arrive. */
export interface EventText {
  text(): string;
  close(): void;
}

export async function readEvents(
  url: string,
  token: string,
  path: string,
  lastEventId?: string,
): Promise<EventText> {
  const leaving = new AbortController();
  const answer = await fetch(`${url}${path}`, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    },
    signal: leaving.signal,
  });
  if (answer.status !== 200 || answer.body === null) throw new Error(`${path}: ${await answer.text()}`);
  let text = "";
  const decoder = new TextDecoder();
  const body = answer.body as unknown as AsyncIterable<Uint8Array>;
  const reading = async () => {
    for await (const chunk of body) text += decoder.decode(chunk, { stream: true });
  };
  void reading().catch((error: unknown) => {
    if (!leaving.signal.aborted) throw error;
  });
  return { text: () => text, close: () => leaving.abort() };
}
