import { useState, type ReactNode } from "react";
import { Refusal, request } from "../../api/client";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { Empty, ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";

type Message = { role: "user" | "assistant"; content: string };
type Answer = { response: string; model: string; truncated?: boolean };

/** Talks with the model of the service. It calls no tools here: what changes something is a plan. */
export default function ChatPage(): ReactNode {
  const [messages, setMessages] = useState<Message[]>([]);
  const [text, setText] = useState("");
  const [model, setModel] = useState<string | null>(null);
  const send = useAction(async () => {
    const asked: Message[] = [...messages, { role: "user", content: text }];
    setMessages(asked);
    setText("");
    try {
      const { body } = await request<Answer>("/chat", { method: "POST", body: { messages: asked } });
      setModel(body.model);
      setMessages([...asked, { role: "assistant", content: body.truncated ? `${body.response} …` : body.response }]);
    } catch (error) {
      setMessages(messages);
      setText(text);
      throw error;
    }
  });
  const noModel = send.error instanceof Refusal && send.error.status === 503;
  return (
    <div className="page narrow">
      <header className="page-head">
        <h1>Chat</h1>
        {model ? (
          <p className="quiet">
            <Text text={model} />
          </p>
        ) : null}
      </header>
      {messages.length === 0 ? (
        <Empty title="Ask the model of this service">
          <p>It only answers. What should be done is proposed as a plan; a chat with tools is planwright chat.</p>
        </Empty>
      ) : null}
      <ol className="chat" aria-live="polite">
        {messages.map((message, index) => (
          <li key={index} className={message.role}>
            <p className="quiet">{message.role === "user" ? "You" : "Model"}</p>
            <p className="words">
              <Text text={message.content} />
            </p>
          </li>
        ))}
      </ol>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") void send.run();
        }}
      >
        <label htmlFor="message">Message</label>
        <textarea
          id="message"
          rows={3}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && text.trim() !== "") void send.run();
          }}
        />
        <div>
          <Button type="submit" tone="accent" busy={send.busy} disabled={text.trim() === ""} keyHint="Ctrl ↵">
            Send
          </Button>
        </div>
        <ProblemNote error={send.error} />
        {noModel ? <p className="quiet">Models are configured in planwright.toml; planwright models lists them.</p> : null}
      </form>
    </div>
  );
}
