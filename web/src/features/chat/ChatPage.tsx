import { useEffect, useRef, useState, type ReactNode } from "react";
import { ask, type ChatMessage } from "../../api/chat";
import { Refusal } from "../../api/client";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { Empty, ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";

/** Talks with the model of the service. It calls no tools here: what changes something is a plan. */
export default function ChatPage(): ReactNode {
  const [messages, setMessages] = useState<ChatMessage[]>([]);
  const [text, setText] = useState("");
  const [model, setModel] = useState<string | null>(null);
  // What the model has said of an answer that is still coming; null while none is.
  const [coming, setComing] = useState<string | null>(null);
  const asking = useRef<AbortController | null>(null);
  useEffect(() => () => asking.current?.abort(), []);
  const send = useAction(async () => {
    const asked: ChatMessage[] = [...messages, { role: "user", content: text }];
    const stop = new AbortController();
    asking.current = stop;
    let said = "";
    setMessages(asked);
    setText("");
    setComing("");
    const keep = (answer: string) => setMessages([...asked, { role: "assistant", content: answer }]);
    try {
      const onText = (piece: string) => {
        said += piece;
        setComing(said);
      };
      const answer = await ask(asked, { onText, signal: stop.signal });
      setModel(answer.model);
      keep(answer.truncated ? `${answer.response} …` : answer.response);
    } catch (error) {
      if (stop.signal.aborted) {
        keep(`${said} … (stopped)`);
        return;
      }
      setMessages(messages);
      setText(text);
      throw error;
    } finally {
      setComing(null);
    }
  });
  const noModel = send.error instanceof Refusal && send.error.status === 503;
  const submit = () => {
    if (text.trim() !== "" && !send.busy) void send.run();
  };
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
      <ol className="chat" aria-live="polite" aria-busy={coming !== null}>
        {messages.map((message, index) => (
          <Said key={index} message={message} />
        ))}
        {coming !== null ? <Said message={{ role: "assistant", content: coming === "" ? "…" : coming }} /> : null}
      </ol>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <label htmlFor="message">Message</label>
        <textarea
          id="message"
          rows={3}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
          }}
        />
        <div className="row">
          <Button type="submit" tone="accent" busy={send.busy} disabled={text.trim() === ""} keyHint="Ctrl ↵">
            Send
          </Button>
          {coming !== null ? <Button onClick={() => asking.current?.abort()}>Stop</Button> : null}
        </div>
        <ProblemNote error={send.error} />
        {noModel ? <p className="quiet">Models are configured in planwright.toml; planwright models lists them.</p> : null}
      </form>
    </div>
  );
}

function Said({ message }: { message: ChatMessage }): ReactNode {
  return (
    <li className={message.role}>
      <p className="quiet">{message.role === "user" ? "You" : "Model"}</p>
      <p className="words">
        <Text text={message.content} />
      </p>
    </li>
  );
}
