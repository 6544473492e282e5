import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { clsx } from 'clsx'
import { Scale } from 'lucide-react'
import { Link, useLocation, useParams, useSearch } from 'wouter'
import { api } from '@/api/client'
import type { components } from '@/api/schema'
import { useConversations } from '@/data/conversations'
import { Field, INPUT } from '@/ui/Field'
import { Empty, Failed, Loading } from '@/ui/States'
import { View } from '@/ui/View'
import { count, money, plural } from '@/ui/words'

type Comparison = components['schemas']['ComparisonOut']
type Side = Comparison['a']
type Pair = Comparison['pairs'][number]
type Answer = NonNullable<Pair['a']>

/** Two conversations side by side: what each answered to the same prompts, and what it took. */
export default function Compare() {
  const { id } = useParams<{ id: string }>()
  const [, go] = useLocation()
  const own = decodeURIComponent(id)
  const other = new URLSearchParams(useSearch()).get('with') ?? ''
  const choose = (chosen: string) =>
    go(`/c/${encodeURIComponent(own)}/compare${chosen ? `?with=${encodeURIComponent(chosen)}` : ''}`, { replace: true })
  return (
    <View title="Compare" about="Prompts that belong together, what each conversation answered, and what it took.">
      <Chooser own={own} other={other} choose={choose} />
      {other ? (
        <Both own={own} other={other} />
      ) : (
        <Empty icon={Scale} title="Nothing to compare with yet">
          Choose another conversation. A copy, or what another model was asked, stands among them.
        </Empty>
      )}
    </View>
  )
}

function Chooser({ own, other, choose }: { own: string; other: string; choose: (id: string) => void }) {
  const list = useConversations({ shelf: 'active', project: '' })
  const found = (list.data?.pages ?? []).flatMap((page) => page.data).filter((one) => one.id !== own)
  return (
    <div className="mb-8 max-w-xl">
      <Field label="With">
        {(field) => (
          <select {...field} className={INPUT} value={other} onChange={(event) => choose(event.target.value)}>
            <option value="">Choose a conversation…</option>
            {other && !found.some((one) => one.id === other) && <option value={other}>{other.slice(0, 13)}</option>}
            {found.map((one) => (
              <option key={one.id} value={one.id}>
                {[one.title || 'Untitled', one.model || one.agent].join(' · ')}
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
  if (error) return <Failed error={error} again={() => void refetch()} />
  if (!data) return <Loading />
  return (
    <>
      <div className="mb-8 grid gap-3 sm:grid-cols-2">
        <Sums name="A" side={data.a} />
        <Sums name="B" side={data.b} />
      </div>
      {data.same && <p className="mb-6 text-sm text-muted">They say the same.</p>}
      <ol className="space-y-8">
        {data.pairs.map((pair, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: pairs have no other name than their place
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
          {side.title || 'Untitled'}
        </Link>
      </h2>
      <p className="mt-1 truncate text-xs text-muted">{side.model || side.agent}</p>
      <p className="mt-3 text-sm">{took(side, side.tools)}</p>
    </section>
  )
}

function One({ pair }: { pair: Pair }) {
  const prompt = pair.prompt.a ?? pair.prompt.b ?? ''
  return (
    <article>
      <h2 className="mb-2 line-clamp-3 text-sm font-semibold break-words">{prompt || 'Without a prompt'}</h2>
      <div className="grid gap-x-3 gap-y-1 text-xs text-muted sm:grid-cols-2">
        <p>A: {facts(pair.a)}</p>
        <p>B: {facts(pair.b)}</p>
      </div>
      {pair.same ? (
        <p className="mt-3 text-sm text-muted">The same answer.</p>
      ) : (
        <p
          className="mt-3 rounded-xl border border-line bg-sunken/40 p-4 text-sm leading-relaxed break-words whitespace-pre-wrap"
          dir="auto"
        >
          {pair.diff.map(([kind, text], at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no other name than their place
            <Piece key={at} kind={kind} text={text} />
          ))}
        </p>
      )}
    </article>
  )
}

function Piece({ kind, text }: { kind: string; text: string }) {
  if (kind === ' ') return <>{text}</>
  const Tag = kind === '-' ? 'del' : 'ins'
  return (
    <Tag className={clsx('rounded-sm px-0.5', kind === '-' ? 'bg-danger-soft' : 'bg-good-soft no-underline')}>
      <span className="sr-only">{kind === '-' ? 'only A: ' : 'only B: '}</span>
      {text}
    </Tag>
  )
}

function facts(answer: Answer | null | undefined): string {
  if (!answer) return 'no answer'
  const state = answer.status === 'finished' ? '' : answer.status
  return [answer.model || answer.agent, state, took(answer, answer.tools.length)].filter(Boolean).join(' · ')
}

function took(of: Pick<Side, 'usage' | 'cost' | 'ms'>, tools: number): string {
  const tokens = (of.usage.input ?? 0) + (of.usage.output ?? 0)
  return [
    of.ms === null ? '' : `${(of.ms / 1000).toFixed(1)} s`,
    tokens ? `${count(tokens)} tokens` : '',
    of.cost === null ? 'cost unknown' : money(of.cost),
    tools ? plural(tools, 'tool call') : '',
  ]
    .filter(Boolean)
    .join(' · ')
}
