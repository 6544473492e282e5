import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { clsx } from 'clsx'
import { Scale } from 'lucide-react'
import { Link, useLocation, useParams, useSearch } from 'wouter'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import { useConversations } from '@/data/conversations'
import { EVERYTHING } from '@/lists/filter'
import { text } from '@/text'
import { Field, INPUT } from '@/ui/Field'
import { money } from '@/ui/format'
import { Empty, Failed, Loading } from '@/ui/States'
import { View } from '@/ui/View'

type Comparison = components['schemas']['ComparisonOut']
type Side = Comparison['a']
type Pair = Comparison['pairs'][number]
type Answer = NonNullable<Pair['a']>

/** Compare two conversations: responses to the same prompts, time and cost. */
export default function Compare() {
  const { id } = useParams<{ id: string }>()
  const [, go] = useLocation()
  const own = decodeURIComponent(id)
  const other = new URLSearchParams(useSearch()).get('with') ?? ''
  const choose = (chosen: string) =>
    go(`/c/${encodeURIComponent(own)}/compare${chosen ? `?with=${encodeURIComponent(chosen)}` : ''}`, { replace: true })
  return (
    <View title={text.compare.title} about={text.compare.about}>
      <Chooser own={own} other={other} choose={choose} />
      {other ? (
        <Both own={own} other={other} />
      ) : (
        <Empty icon={Scale} title={text.compare.emptyTitle}>
          {text.compare.empty}
        </Empty>
      )}
    </View>
  )
}

function Chooser({ own, other, choose }: { own: string; other: string; choose: (id: string) => void }) {
  const list = useConversations(EVERYTHING)
  const found = (list.data?.pages ?? []).flatMap((page) => page.data).filter((one) => one.id !== own)
  return (
    <div className="mb-8 max-w-xl">
      <Field label={text.compare.with}>
        {(field) => (
          <select {...field} className={INPUT} value={other} onChange={(event) => choose(event.target.value)}>
            <option value="">{text.compare.choose}</option>
            {other && !found.some((one) => one.id === other) && <option value={other}>{other.slice(0, 13)}</option>}
            {found.map((one) => (
              <option key={one.id} value={one.id}>
                {[one.title || text.common.untitled, one.model || one.last_model || one.agent].join(' · ')}
              </option>
            ))}
          </select>
        )}
      </Field>
    </div>
  )
}

function Both({ own, other }: { own: string; other: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['compare', own, other],
    queryFn: ({ signal }) =>
      api.get<Comparison>(`/conversations/${encodeURIComponent(own)}/compare`, { query: { with: other }, signal }),
    placeholderData: keepPreviousData,
  })
  if (error) return <Failed error={error} retry={() => void refetch()} />
  if (!data) return <Loading />
  return (
    <>
      <div className="mb-8 grid gap-3 sm:grid-cols-2">
        <Sums name="A" side={data.a} />
        <Sums name="B" side={data.b} />
      </div>
      {data.same && <p className="mb-6 text-sm text-muted">{text.compare.same}</p>}
      <ol className="space-y-8">
        {data.pairs.map((pair, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: pairs have no id
          <li key={at}>
            <One pair={pair} />
          </li>
        ))}
      </ol>
    </>
  )
}

function Sums({ name, side }: { name: string; side: Side }) {
  return (
    <section aria-label={name} className="min-w-0 rounded-xl border border-line bg-raised p-4">
      <h2 className="truncate text-sm font-semibold">
        <span className={name === 'A' ? 'text-danger' : 'text-good'}>{name}</span>{' '}
        <Link
          href={`/c/${encodeURIComponent(side.id)}`}
          className="hover:underline max-md:inline-grid max-md:min-h-11 max-md:place-items-center"
        >
          {side.title || text.common.untitled}
        </Link>
      </h2>
      <p className="mt-1 truncate text-xs text-muted">{side.model || side.last_model || side.agent}</p>
      <p className="mt-3 text-sm">{summary(side, side.tools)}</p>
    </section>
  )
}

function One({ pair }: { pair: Pair }) {
  const prompt = pair.prompt.a ?? pair.prompt.b ?? ''
  return (
    <article>
      <h2 className="mb-2 line-clamp-3 text-sm font-semibold break-words">{prompt || text.compare.noPrompt}</h2>
      <div className="grid gap-x-3 gap-y-1 text-xs text-muted sm:grid-cols-2">
        <p>A: {facts(pair.a)}</p>
        <p>B: {facts(pair.b)}</p>
      </div>
      {pair.same ? (
        <p className="mt-3 text-sm text-muted">{text.compare.sameResponse}</p>
      ) : (
        <p
          className="mt-3 rounded-xl border border-line bg-sunken/40 p-4 text-sm leading-relaxed break-words whitespace-pre-wrap"
          dir="auto"
        >
          {pair.diff.map(([kind, piece], at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no id
            <Piece key={at} kind={kind} content={piece} />
          ))}
        </p>
      )}
    </article>
  )
}

function Piece({ kind, content }: { kind: string; content: string }) {
  if (kind === ' ') return <>{content}</>
  const Tag = kind === '-' ? 'del' : 'ins'
  return (
    <Tag className={clsx('rounded-sm px-0.5', kind === '-' ? 'bg-danger-soft' : 'bg-good-soft no-underline')}>
      <span className="sr-only">{kind === '-' ? text.compare.onlyA : text.compare.onlyB}</span>
      {content}
    </Tag>
  )
}

function facts(answer: Answer | null | undefined): string {
  if (!answer) return text.compare.noResponse
  const state = answer.status === 'finished' ? '' : answer.status
  return [answer.model || answer.agent, state, summary(answer, answer.tools.length)].filter(Boolean).join(' · ')
}

function summary(of: Pick<Side, 'usage' | 'cost' | 'ms'>, tools: number): string {
  const tokens = (of.usage.input ?? 0) + (of.usage.output ?? 0)
  return [
    of.ms === null ? '' : text.time.seconds(of.ms / 1000),
    tokens ? text.compare.tokens(tokens) : '',
    of.cost === null ? text.compare.costUnknown : money(of.cost),
    tools ? text.compare.toolCalls(tools) : '',
  ]
    .filter(Boolean)
    .join(' · ')
}
