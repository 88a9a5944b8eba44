"""A starter adapter for `mcpvisor chaos score`, for the official Python SDK. Put your own client in the place of Link.

    pip install mcp
    mcpvisor chaos score -- python3 adapter.py

It is written as the SDK's documentation shows: a session inside of its context managers, a timeout for every request, and a new
session at the next use of one that was lost. No call is sent twice. Standard output belongs to the protocol: say everything
else on standard error.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import AsyncExitStack

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


class Link:
    """One server: how to reach it, and the task that holds its session, if there is one."""

    def __init__(self, where):
        self.where, self.session, self.task = where, None, None
        self.dialling = asyncio.Lock()  # a server is never connected twice at a time

    async def get(self):
        async with self.dialling:
            if self.session is None:
                await self.end()
                ready = asyncio.get_running_loop().create_future()
                self.ending = asyncio.Event()
                self.task = asyncio.create_task(self.hold(ready))
                try:
                    self.session = await ready
                except BaseException:
                    await self.end()
                    raise
            return self.session

    async def hold(self, ready):
        """The SDK's context managers must be left by the task that has entered them: this one."""
        try:
            async with AsyncExitStack() as stack:
                if self.where.get("url"):
                    streams = await stack.enter_async_context(
                        streamablehttp_client(self.where["url"], headers=self.where.get("headers")))
                else:
                    quiet = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                    streams = await stack.enter_async_context(stdio_client(StdioServerParameters(
                        command=self.where["command"], args=self.where.get("args") or []), errlog=quiet))
                session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
                await session.initialize()
                ready.set_result(session)
                await self.ending.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(RuntimeError(text_of(error)))
        finally:
            self.session = None

    async def use(self, ask):
        session = await self.get()
        try:
            return await ask(session)
        except Exception as error:
            if "closed" in text_of(error).lower():  # the next use begins anew
                self.session = None
            raise

    async def end(self):
        task, self.task, self.session = self.task, None, None
        if task is not None:
            self.ending.set()
            await asyncio.wait([task], timeout=10)
            if not task.done():
                task.cancel()


def text_of(error):
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


links = {}


async def perform(c):
    do, name = c["do"], c.get("name")
    if do == "about":
        return {"about": "Python SDK; a new session at the next use of one that was closed, no call twice"}
    if do == "connect":
        links[name] = Link(c)
        await links[name].get()
    elif do == "list":
        async def pages(session):
            names, cursor = [], None
            while True:
                page = await session.list_tools(cursor) if cursor is not None else await session.list_tools()
                names += [tool.name for tool in page.tools]
                cursor = page.nextCursor
                if cursor is None or len(names) >= 100_000:
                    return names
        return {"tools": await links[name].use(pages)}
    elif do == "call":
        got = await links[name].use(lambda session: session.call_tool(c["tool"], c.get("args") or {}))
        return {"result": got.model_dump(mode="json", by_alias=True, exclude_none=True)}
    elif do == "status":
        return {"status": {name: "connected" if link.session else "lost" for name, link in links.items()}}
    elif do == "close":
        await links[name].end()
    elif do == "quit":
        await asyncio.gather(*(link.end() for link in links.values()), return_exceptions=True)
    else:
        raise ValueError(f"unknown command {do}")
    return {}


async def answer(c):
    began = time.monotonic()
    try:
        said = {"ok": True, **await asyncio.wait_for(perform(c), (c.get("timeoutMs") or 60_000) / 1000)}
    except Exception as error:
        said = {"ok": False, "error": text_of(error)}
    said |= {"id": c["id"], "tookMs": int((time.monotonic() - began) * 1000)}
    print(json.dumps(said), flush=True)
    if c["do"] == "quit":
        os._exit(0)


async def main():
    reader = asyncio.StreamReader(limit=1 << 30)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running = set()
    while line := await reader.readline():  # commands run beside each other
        task = asyncio.create_task(answer(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    await answer({"id": 0, "do": "quit"})


asyncio.run(main())
