"""The server for agents, with the official client of the Model Context Protocol."""

import asyncio
import sysconfig
from pathlib import Path

import pytest

mcp = pytest.importorskip("mcp")
stdio = pytest.importorskip("mcp.client.stdio")

COMMAND = str(Path(sysconfig.get_path("scripts")) / "busbound")


def talk(root, conversation):
    """Starts a server, and runs what a client does with it."""

    async def session():
        parameters = mcp.StdioServerParameters(command=COMMAND, args=["mcp", "--root", str(root)])
        async with stdio.stdio_client(parameters) as (read, write), mcp.ClientSession(read, write) as client:
            started = await client.initialize()
            return await conversation(client, started)

    return asyncio.run(asyncio.wait_for(session(), 60))


def as_dict(model):
    """By the names of the protocol, whatever the client calls them."""
    return model.model_dump(by_alias=True, mode="json")


def test_the_official_client_finds_the_tools(fixtures):
    async def conversation(client, started):
        await client.send_ping()
        return as_dict(started), as_dict(await client.list_tools())["tools"]

    started, tools = talk(fixtures, conversation)
    assert started["serverInfo"]["name"] == "busbound"
    assert [tool["name"] for tool in tools] == ["survey", "diagnose", "whatif", "compare", "explain", "plan"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)


def test_the_schemas_of_arguments_are_schemas(fixtures):
    jsonschema = pytest.importorskip("jsonschema")

    async def conversation(client, _):
        return as_dict(await client.list_tools())["tools"]

    for tool in talk(fixtures, conversation):
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])


def test_the_official_client_gets_answers_and_errors(fixtures):
    async def conversation(client, _):
        trace = {"paths": ["off_block_pageable_c4.json.gz"]}
        answer = await client.call_tool("diagnose", trace)
        refused = await client.call_tool("diagnose", {"paths": ["../Cargo.toml"]})
        return as_dict(answer), as_dict(refused)

    answer, refused = talk(fixtures, conversation)
    assert not answer["isError"]
    assert answer["structuredContent"]["verdict"]["bound"] == "transfer"
    assert answer["content"][0]["text"].startswith("Transfer-bound")
    assert refused["isError"]
    assert "outside the directories" in refused["content"][0]["text"]
