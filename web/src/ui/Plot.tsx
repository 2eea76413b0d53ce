// Figures over time, as lines, and as a table for those who do not see them.
import { useRef, type ReactNode } from "react";
import { topOf, type Plotted } from "../model/series";
import { useWidth } from "./hooks";
import { Text } from "./Text";

/** As wide as a small phone, until the place it has is known. */
const NARROWEST = 280;
const HEIGHT = 180;
const EDGE = { left: 36, right: 8, top: 8, bottom: 22 };

/** `isSum` says that the values of all days together mean something. */
export function Plot({ title, plotted, isSum = true }: { title: string; plotted: Plotted; isSum?: boolean }): ReactNode {
  const { days, series } = plotted;
  const box = useRef<HTMLElement>(null);
  const width = Math.max(NARROWEST, useWidth(box));
  if (days.length === 0 || series.length === 0) return <p className="quiet">Nothing to draw yet.</p>;
  const top = topOf(plotted);
  const x = (index: number) => EDGE.left + (days.length === 1 ? 0 : (index / (days.length - 1)) * (width - EDGE.left - EDGE.right));
  const y = (value: number) => HEIGHT - EDGE.bottom - (value / top) * (HEIGHT - EDGE.top - EDGE.bottom);
  const marks = [...new Set([0, Math.floor((days.length - 1) / 2), days.length - 1])];
  return (
    <figure ref={box} className="plot">
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
        {[0, top / 2, top].filter(Number.isInteger).map((value) => (
          <g key={value}>
            <line className="rule" x1={EDGE.left} x2={width - EDGE.right} y1={y(value)} y2={y(value)} />
            <text x={EDGE.left - 6} y={y(value) + 4} textAnchor="end">
              {value}
            </text>
          </g>
        ))}
        {marks.map((index) => (
          <text key={index} x={x(index)} y={HEIGHT - 6} textAnchor={index === 0 ? "start" : index === days.length - 1 ? "end" : "middle"}>
            {days[index]}
          </text>
        ))}
        {series.map(({ name, values }, index) => (
          <g key={name} className={`series series-${index % 4}`}>
            <polyline points={values.map((value, at) => `${x(at)},${y(value)}`).join(" ")} />
            {values.map((value, at) => (value > 0 ? <circle key={at} cx={x(at)} cy={y(value)} r={2.5} /> : null))}
          </g>
        ))}
      </svg>
      <figcaption className="row">
        {series.map(({ name, values }, index) => (
          <span key={name} className="legend">
            <svg viewBox="0 0 24 8" aria-hidden="true" className={`series series-${index % 4}`}>
              <line x1="0" x2="24" y1="4" y2="4" />
            </svg>
            <Text text={name} /> {isSum ? <b>{values.reduce((sum, value) => sum + value, 0)}</b> : null}
          </span>
        ))}
      </figcaption>
      <div className="only-read">
        <table>
          <caption>{title}</caption>
          <thead>
            <tr>
              <th scope="col">day</th>
              {series.map(({ name }) => (
                <th key={name} scope="col">
                  <Text text={name} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {days.map((day, index) => (
              <tr key={day}>
                <th scope="row">{day}</th>
                {series.map(({ name, values }) => (
                  <td key={name}>{values[index] ?? 0}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}
