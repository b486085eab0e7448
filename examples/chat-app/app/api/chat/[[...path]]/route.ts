// The route of the chat. In Next.js, this file works as it is, at this path.
import { isStepCount, streamText } from "ai";
import { createSkein } from "skein";
import { createChat } from "skein/ai-sdk";
import { rehearsalModel } from "skein/testing";

const skein = await createSkein();

// The cookie of the page takes the place of your sign-in. Its random user ID is known only to one browser.
function signedInUser(request: Request): string | null {
  const [, userId = null] =
    /(?:^|; )chat_user=([\w-]{36})(?:;|$)/.exec(request.headers.get("cookie") ?? "") ?? [];
  return userId;
}

export const { GET, POST, PATCH, DELETE } = createChat(skein, {
  // The AI SDK sends a model's name, such as anthropic/claude-sonnet-4.5, to Vercel's AI Gateway.
  model: process.env.MODEL ?? rehearsalModel(),
  session: (request, chatId) => {
    const userId = signedInUser(request);
    if (userId === null) return new Response("Open the page of the chat first.", { status: 401 });
    return { userId, sessionId: chatId };
  },
  answer: (call) =>
    streamText({ ...call, system: "You plan journeys. Write plain text.", stopWhen: isStepCount(20) }),
});
